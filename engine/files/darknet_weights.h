// Darknet's .weights files: a header of three int32 (major, minor, revision) and the number of
// images seen, then the float32 parameters of layer after layer, without names or sizes. Only with
// the model can one be read.
//
//   convolutional: bias K, with batch normalisation scale K, mean K, variance K, then weight (K, C
//   / groups, F, F) connected:     bias K, weight (K, C), with batch normalisation then scale K,
//   mean K, variance K
//
// In memory everything is as this program computes: (x - mean) / sqrt(variance + epsilon) * scale +
// bias. Darknet divides by sqrt(variance) + 1e-6, so variances are converted both ways; inference
// agrees to rounding. Where no variance would do (it would be negative), scale takes the
// difference.

#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "partitioner/network.h"

namespace engine {

struct LayerWeights {
  std::vector<float> weight = {};  // (K, C / groups, F, F) or (K, C)
  std::vector<float> bias = {};
  std::vector<float> scale = {};  // this and the two below: with batch normalisation only
  std::vector<float> mean = {};
  std::vector<float> variance = {};

  friend bool operator==(const LayerWeights&, const LayerWeights&) = default;
};

struct DarknetWeights {
  std::vector<LayerWeights>
      layers;  // one per layer of the network, empty vectors for those without parameters
  std::uint64_t seen = 0;  // images trained on
  int layers_filled =
      0;  // how many layers, from the first, the file has; all but in a partial file
};

// Throws InputError with path and layer where the file ends too early or too late. With
// `allow_partial` it may end after any layer (as `darknet partial` cuts it; the layers after have
// empty vectors) or go on after the last.
[[nodiscard]] DarknetWeights read_darknet_weights(const std::filesystem::path& path,
                                                  const partitioner::Network& network,
                                                  double batch_norm_epsilon = 1e-5,
                                                  bool allow_partial = false);

// Whole or not at all, see atomic_file.h. `weights` has all layers of the network.
void write_darknet_weights(const std::filesystem::path& path,
                           const partitioner::Network& network,
                           const DarknetWeights& weights,
                           double batch_norm_epsilon = 1e-5);

}  // namespace engine
