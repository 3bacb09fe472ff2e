// One pass of a convolution by this project's kernels, in the layout of its tensors.

#pragma once

#include "bench/kernels/convolution_case.h"

namespace bench {

class TesseraConvolution {
 public:
  TesseraConvolution(const ConvolutionCase& convolution,
                     Pass pass,
                     engine::ConvolutionKernel kernel,
                     const CaseValues& values);

  // Forward assigns the output; the backward passes add to what they compute, as in training.
  void run();
  // What `run` computed, in plain order.
  [[nodiscard]] std::vector<float> result() const;

 private:
  engine::ConvolutionMethod method_;
  Pass pass_;
  engine::Region input_map_;
  engine::Region output_map_;
  // Values or their gradients; the one that `pass_` computes starts at 0.
  engine::Tensor<float> input_;
  engine::Tensor<float> output_;
  engine::Array<float> weight_;
  engine::Array<float> workspace_;
};

}  // namespace bench
