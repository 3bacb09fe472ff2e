// Transposed convolution, on blocked views and any region of the map.
//
// out[n][k][row][...] = bias[k] + sum over c, fh, fw of weight[k][c][fh][fw] * in[n][c][i][...]
// where row = i * stride + fh - padding: the gradient that a convolution from K to C channels hands
// down. Each pass is another one of that convolution, by the direct kernels.
//
// `cells` are those of the input that `region` of the output requires. Weights, biases and their
// gradients are those of the region's channels.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// Elements of scratch that the passes need for a region, or any part of its images, rows and
// columns.
[[nodiscard]] Index deconvolution_workspace(ConvolutionPass pass,
                                            const ConvolutionShape& shape,
                                            const Region& region,
                                            const Region& cells);

// Assigns out on the region. Biases may be null. Cells have the same bits whatever the region.
template <class T>
void deconvolution_forward(const ConvolutionShape& shape,
                           View<const T> in,
                           const Region& cells,
                           const ForwardFilters<T>& filters,
                           const ConvolutionOutput<T>& out,
                           T* workspace);

// Adds to the input's gradient what the output gradient on `region` says of it.
template <class T>
void deconvolution_backward_data(const ConvolutionShape& shape,
                                 View<const T> out_gradient,
                                 const Region& region,
                                 const T* weight,
                                 View<T> in_gradient,
                                 const Region& cells,
                                 T* workspace);

// Adds to the gradients of weights what the output gradient on `region` says of them.
template <class T>
void deconvolution_backward_weights(const ConvolutionShape& shape,
                                    View<const T> in,
                                    const Region& cells,
                                    View<const T> out_gradient,
                                    const Region& region,
                                    T* weight_gradient,
                                    T* workspace);

}  // namespace tessera::engine
