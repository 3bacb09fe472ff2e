// Training on disk: whole tensors, so that it can go on under any partition. Weights as
// "layers.3.weight", optimizer state as "optimizer.layers.3.weight.first" and ".second"; step,
// seed, images seen, the model's text and how its pictures are prepared are metadata of the file.
//
// What rounding has left of gradients and values, where these travel rounded, is not in it: a run
// that goes on after saving forgets it, too, see ParameterSet::forget_remainders().
//
// Rank 0 reads and writes; a piece of a tensor at a time travels between it and its owners, so that
// checkpoints take no memory to speak of. All ranks call these functions together, and errors are
// AgreedErrors on all of them.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/train/optimizer.h"
#include "engine/train/preparation.h"

namespace engine {

struct TrainingState {
  Index step = 0;  // updates done
  std::uint64_t seed = 0;
  std::string model;                                      // text of the model file
  std::string fingerprint;                                // of its network
  Index images_seen = 0;                                  // trained on so far, each time counted
  std::optional<Preparation> preparation = std::nullopt;  // what old files do not know
};

void save_checkpoint(const std::filesystem::path& path,
                     const TrainingState& state,
                     const ParameterSet<float>& parameters,
                     const Optimizer<float>& optimizer,
                     const Communicator& communicator);

// Fills parameters and optimizer. Refuses a checkpoint of another network, or one without the
// optimizer's state.
[[nodiscard]] TrainingState load_checkpoint(const std::filesystem::path& path,
                                            const partitioner::Network& network,
                                            ParameterSet<float>& parameters,
                                            Optimizer<float>& optimizer,
                                            const Communicator& communicator);

// The images that the training of a file of weights has seen; 0 where it does not say. Reads on
// this rank.
[[nodiscard]] Index images_seen(const std::filesystem::path& path);

// The seed that a checkpoint's training had.
[[nodiscard]] std::uint64_t checkpoint_seed(const std::filesystem::path& path,
                                            const Communicator& communicator);

// Only the weights, from a checkpoint or from a file of Darknet's, see is_safetensors().
void load_weights(const std::filesystem::path& path,
                  const partitioner::Network& network,
                  double batch_norm_epsilon,
                  ParameterSet<float>& parameters,
                  const Communicator& communicator);

// Only the weights, to a Darknet .weights file.
void save_darknet_weights(const std::filesystem::path& path,
                          const partitioner::Network& network,
                          double batch_norm_epsilon,
                          Index images_seen,
                          const ParameterSet<float>& parameters,
                          const Communicator& communicator);

}  // namespace engine
