// The direct kernels: convolutions of any filter, stride, padding and grouping. Each output cell is
// summed from its bias on in the order c, fh, fw whatever the region, so its bits do not depend on
// how a map is cut.
// Arguments are those of convolution.h.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// Elements of scratch of the way back to the data.
[[nodiscard]] Index direct_workspace(const ConvolutionShape& shape, const Region& output);

// Whether the way back to the data can assign: each cell that windows meet is summed from a start.
[[nodiscard]] bool direct_assigns(const ConvolutionShape& shape);

template <class T>
void direct_forward(const ConvolutionShape& shape,
                    View<const T> in,
                    const T* weight,
                    const T* bias,
                    const ConvolutionOutput<T>& out);

template <class T>
void direct_backward_data(const ConvolutionShape& shape,
                          View<const T> out_gradient,
                          const Filters<T>& filters,
                          const Region& region,
                          const InputGradient<T>& in_gradient,
                          T* workspace);

// Where gradients lie in whole blocks, and neighbouring pixels are not what vectors hold.
template <class T>
[[nodiscard]] bool direct_takes_made_gradient(const ConvolutionShape& shape,
                                              const View<const T>& in,
                                              const View<const T>& out_gradient,
                                              const Region& region);

template <class T>
void direct_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             const MadeGradient<T>& out_gradient,
                             const Region& region,
                             Index first_filter,
                             T* weight_gradient);

template <class T>
void direct_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             View<const T> out_gradient,
                             const Region& region,
                             Index first_filter,
                             T* weight_gradient);

}  // namespace tessera::engine
