// A convolution of a model as something to measure: its shape, what it costs, and random numbers
// for it in plain order, of which each library makes copies in its own layout.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/ops/convolution/convolution.h"

namespace tessera::bench {

enum class Pass { Forward, BackwardData, BackwardWeights };
inline constexpr Pass kPasses[] = {Pass::Forward, Pass::BackwardData, Pass::BackwardWeights};

// "forward", "backward_data", "backward_weights"
[[nodiscard]] std::string_view name_of(Pass pass);

struct ConvolutionCase {
  int layer = 0;
  bool reads_image = false;  // training asks for no gradient of the image
  Index batch = 1;
  engine::ConvolutionShape shape;
  partitioner::MapShape input;  // of one image, as is `output`
  partitioner::MapShape output;
  std::vector<engine::ConvolutionKernel> kernels;  // of ours that apply

  [[nodiscard]] Index weights() const { return shape.filters * shape.row(); }
  // Operations of any one pass by the definition: two a multiply-add.
  [[nodiscard]] double flops() const;
  // Input, weights and output in single precision, each read or written once.
  [[nodiscard]] double least_bytes() const;
  // "3x3, 64 > 128, 104x104"
  [[nodiscard]] std::string description() const;
};

[[nodiscard]] std::vector<ConvolutionCase> convolution_cases(const partitioner::Network& network,
                                                             Index batch);

// Uniform in [-1, 1), the same for the same layer.
struct CaseValues {
  std::vector<float> input;            // (N, C, H, W)
  std::vector<float> weight;           // (K, C/groups, F, F)
  std::vector<float> output_gradient;  // (N, K, H', W')
};

[[nodiscard]] CaseValues random_values(const ConvolutionCase& convolution);

}  // namespace tessera::bench
