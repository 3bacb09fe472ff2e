// Direct convolutions of one channel and one filter per group, without dilation: no sum over
// channels, so a vector of channels is computed side by side.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

[[nodiscard]] inline bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.channels && shape.groups == shape.filters && shape.dilation == 1;
}

// A shape that is_depthwise().
struct DepthwiseKernel {
  ConvolutionShape shape;

  template <class T>
  void forward(const ForwardArguments<T>& given) const;
  template <class T>
  void backward_data(const BackwardDataArguments<T>& given) const;
  template <class T>
  void backward_weights(const BackwardWeightsArguments<T>& given) const;
};

}  // namespace tessera::engine
