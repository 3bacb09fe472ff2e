// The weights of a network alone, from a checkpoint or from a file of Darknet's (told apart by
// is_safetensors()), and to a file of Darknet's. Every number is checked before any is used.
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

// Takes the layers that the file has in the network's sizes; the others keep the values that they
// have. Returns, on rank 0, a line about each that does not come from the file; throws where none
// does.
[[nodiscard]] std::vector<std::string> load_fitting_weights(const std::filesystem::path& path,
                                                            const partitioner::Network& network,
                                                            const partitioner::NormRule& norm,
                                                            ParameterSet<float>& parameters,
                                                            const Communicator& communicator);

// The images that the training of a file of weights has seen; 0 where it does not say. Reads on
// this rank alone.
[[nodiscard]] Index images_seen(const std::filesystem::path& path);

// Only the weights, to a Darknet .weights file.
void save_darknet_weights(const std::filesystem::path& path,
                          const partitioner::Network& network,
                          const partitioner::NormRule& norm,
                          Index images_seen,
                          const ParameterSet<float>& parameters,
                          const Communicator& communicator);

}  // namespace tessera::engine
