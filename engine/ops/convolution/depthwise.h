// Direct convolutions of one channel and one filter per group: no sum over channels, so a vector of
// channels is computed side by side. Arguments are those of convolution.h.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

[[nodiscard]] inline bool is_depthwise(const ConvolutionShape& shape) {
  return shape.groups == shape.channels && shape.groups == shape.filters;
}

template <class T>
void depthwise_forward(const ConvolutionShape& shape,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       const ConvolutionOutput<T>& out);

template <class T>
void depthwise_backward_data(const ConvolutionShape& shape,
                             View<const T> out_gradient,
                             const Filters<T>& filters,
                             const Region& region,
                             const InputGradient<T>& in_gradient);

template <class T>
void depthwise_backward_weights(const ConvolutionShape& shape,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_filter,
                                T* weight_gradient);

}  // namespace tessera::engine
