// Convolutions as their definition has them, in plain loops: slow, and easy to believe.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

struct ReferenceKernel {
  ConvolutionShape shape;

  template <class T>
  void forward(const ForwardArguments<T>& given) const;
  template <class T>
  void backward_data(const BackwardDataArguments<T>& given) const;
  template <class T>
  void backward_weights(const BackwardWeightsArguments<T>& given) const;
};

}  // namespace tessera::engine
