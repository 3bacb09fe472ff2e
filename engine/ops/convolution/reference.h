// Convolutions as their definition has them, in plain loops: slow, and easy to believe. Arguments
// are those of convolution.h.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

template <class T>
void reference_forward(const ConvolutionShape& shape,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       const ConvolutionOutput<T>& out);

template <class T>
void reference_backward_data(const ConvolutionShape& shape,
                             View<const T> out_gradient,
                             const Filters<T>& filters,
                             const Region& region,
                             const InputGradient<T>& in_gradient);

template <class T>
void reference_backward_weights(const ConvolutionShape& shape,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_filter,
                                T* weight_gradient);

}  // namespace tessera::engine
