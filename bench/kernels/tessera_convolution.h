// One pass of a convolution by this project's kernels, in the layout of its tensors. In double
// precision it is the reference for single precision.

#pragma once

#include "bench/kernels/convolution_case.h"

namespace tessera::bench {

template <class T>
class TesseraConvolution {
 public:
  TesseraConvolution(const ConvolutionCase& convolution,
                     Pass pass,
                     engine::ConvolutionKernel kernel,
                     const CaseValues& values);

  // Gradients of weights are added to what is there, all else is assigned, as in training.
  void run();
  // What `run` computed, in plain order.
  [[nodiscard]] std::vector<T> result() const;

 private:
  engine::ConvolutionMethod method_;
  Pass pass_;
  Region input_map_;
  Region output_map_;
  // Values or their gradients; the one that `pass_` computes starts at 0.
  engine::Tensor<T> input_;
  engine::Tensor<T> output_;
  engine::Array<T> weight_;
  engine::Array<T> workspace_;
};

}  // namespace tessera::bench
