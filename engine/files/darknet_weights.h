// Darknet's .weights files: a header of three int32 (major, minor, revision) and the number of
// images seen, then the float32 parameters of layer after layer, without names or sizes. Only with
// the model can one be read.
//
//   convolutional: bias K, with batch normalisation scale K, mean K, variance K, then weight (K, C
//   / groups, F, F) connected:     bias K, weight (K, C), with batch normalisation then scale K,
//   mean K, variance K
//
// In memory everything is as the rule of batch normalisation has it. By PyTorch's that is
// (x - mean) / sqrt(variance + epsilon) * scale + bias. Darknet divides by sqrt(variance) + 1e-6,
// so variances are converted both ways; inference agrees to rounding. Where no variance would do
// (it would be negative), scale takes the difference. By Darknet's rule nothing is converted.

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/files/input_file.h"
#include "partitioner/network/network.h"
#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

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

// A file that has been found to be as long as the model's parameters. The vectors of a layer come
// at once, its weight in chunks of any size: so a large file is never in memory whole. `network`
// must outlive the reader.
class DarknetWeightsReader {
 public:
  // Throws InputError with path, layer and byte where the file ends too early or too late. With
  // `allow_partial` it may end after any layer (as `darknet partial` cuts it), or have another
  // number of outputs in the last one, which then counts as one it does not have.
  DarknetWeightsReader(const std::filesystem::path& path,
                       const partitioner::Network& network,
                       const partitioner::NormRule& norm = {},
                       bool allow_partial = false);

  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  [[nodiscard]] int layers_filled() const { return static_cast<int>(begins_.size()); }
  // Outputs of the first layer that it does not have, where that has another number of them; else
  // 0.
  [[nodiscard]] Index other_outputs() const { return other_outputs_; }

  // All of a layer but its weight. Throws InputError where a number is not finite, or a variance
  // negative.
  [[nodiscard]] LayerWeights vectors(int layer) const;

  // Assigns elements [begin, begin + out.size()) of the layer's weight. Throws InputError where one
  // is not finite.
  void read_weight(int layer, Index begin, std::span<float> out) const;

 private:
  InputFile file_;
  const partitioner::Network* network_;
  partitioner::NormRule norm_;
  std::uint64_t seen_ = 0;
  bool transposed_ = false;    // weights of connected layers are (C, K)
  std::vector<Index> begins_;  // of each layer that is there, in bytes
  Index other_outputs_ = 0;
};

// The images that a file's header says its weights were trained on.
[[nodiscard]] std::uint64_t darknet_images_seen(const std::filesystem::path& path);

// Whole or not at all, see atomic_file.h. `weights.layers` are the network's, or the first of them:
// then the file is a partial one.
void write_darknet_weights(const std::filesystem::path& path,
                           const partitioner::Network& network,
                           const DarknetWeights& weights,
                           const partitioner::NormRule& norm = {});

}  // namespace tessera::engine
