// The weights of a network alone, from a checkpoint (their averages, where it has any) or from a
// file of Darknet's (told apart by is_safetensors()), and to a file of Darknet's. Every number is
// checked before any is used.
//
// Rank 0 reads and writes; tensors travel in chunks. All ranks call these functions together unless
// said otherwise, and errors are AgreedErrors on all of them.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/execution/parameters.h"
#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

// The file must have all weights of the network.
void load_weights(const std::filesystem::path& path,
                  const partitioner::Network& network,
                  const partitioner::NormRule& norm,
                  ParameterSet<float>& parameters,
                  const Communicator& communicator);

// What came from a file. Rank 0's.
struct FittingWeights {
  std::string taken = {};                 // "layers 0 to 28, 31"; empty: all
  std::vector<std::string> misfits = {};  // a line about those that did not
};

// Takes the layers that the file has in the network's sizes; the others keep the values that they
// have. Throws where no layer comes from the file.
[[nodiscard]] FittingWeights load_fitting_weights(const std::filesystem::path& path,
                                                  const partitioner::Network& network,
                                                  const partitioner::NormRule& norm,
                                                  ParameterSet<float>& parameters,
                                                  const Communicator& communicator);

// The last layer that load_fitting_weights() would take, with all before it: up to the first one
// that the file lacks. -1: that is the first layer with parameters.
[[nodiscard]] int last_layer_present(const std::filesystem::path& path,
                                     const partitioner::Network& network,
                                     const Communicator& communicator);

// The images that the training of a file of weights has seen; 0 where it does not say. Reads on
// this rank alone.
[[nodiscard]] Index images_seen(const std::filesystem::path& path);

// Only the weights of so many layers, from the first, to a Darknet .weights file.
void save_darknet_weights(const std::filesystem::path& path,
                          const partitioner::Network& network,
                          const partitioner::NormRule& norm,
                          Index images_seen,
                          const ParameterSet<float>& parameters,
                          const Communicator& communicator,
                          int layers);

}  // namespace tessera::engine
