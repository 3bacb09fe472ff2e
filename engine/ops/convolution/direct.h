// The direct kernels: convolutions of any filter, stride, padding and grouping. Each output cell is
// summed from its bias on in the order c, fh, fw whatever the region, so its bits do not depend on
// how a map is cut.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

struct DirectKernel {
  ConvolutionShape shape;

  // Elements of scratch of the way back to the data.
  [[nodiscard]] Index workspace(const Region& output) const;

  // Whether the way back to the data can assign: each cell that windows meet is summed from a
  // start.
  [[nodiscard]] bool assigns() const;

  // Whether gradients lie in whole blocks, and neighbouring pixels are not what vectors hold.
  template <class T>
  [[nodiscard]] bool takes_made_gradient(const View<const T>& in,
                                         const View<const T>& out_gradient,
                                         const Region& region) const;

  // Whether the gradient of weights can be assigned.
  template <class T>
  [[nodiscard]] bool assigns_weights(const View<const T>& in,
                                     const View<const T>& out_gradient,
                                     const Region& region) const;

  template <class T>
  void forward(const ForwardArguments<T>& given) const;
  template <class T>
  void backward_data(const BackwardDataArguments<T>& given) const;
  template <class T>
  void backward_weights(const BackwardWeightsArguments<T>& given) const;

  // The same with gradients that are made on the way; `given.out_gradient` is what they are made
  // of.
  template <class T>
  void backward_weights(const BackwardWeightsArguments<T>& given,
                        const typename MadeGradient<T>::Make& make) const;
};

}  // namespace tessera::engine
