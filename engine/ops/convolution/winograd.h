// Winograd's convolution F(m x m, 3x3) (Lavin, Gray 2016): 3x3 filters of stride 1 in tiles of m x
// m outputs (m = 2 or 4), with 2.25 or 4 times fewer multiplications than the direct sum, and
// rounding errors that grow with m.
//
// Tiles lie on multiples of m in global coordinates. A cell's bits depend on all of the (m + 2)^2
// inputs of its tile: they are the same for any cut that lies on the grid, and equal to rounding
// for others. Cells outside what a region requires count as 0.

#pragma once

#include "engine/ops/convolution/convolution.h"

namespace tessera::engine {

// A convolution of size 3, stride 1 and one group, in tiles of side x side outputs: m is 2 or 4.
struct WinogradMethod {
  ConvolutionShape shape;
  Index side = 4;
};

// Elements of scratch that a pass over the outputs `region`, or any part of its rows and columns,
// needs.
[[nodiscard]] Index winograd_workspace(const WinogradMethod& method,
                                       const Region& region,
                                       ConvolutionPass pass);

// The passes, with the arguments of convolution.h.

template <class T>
bool winograd_prepare(const WinogradMethod& method, const T* weight, Index filters, T* workspace);

template <class T>
void winograd_forward(const WinogradMethod& method,
                      View<const T> in,
                      const ForwardFilters<T>& filters,
                      const ConvolutionOutput<T>& out,
                      T* workspace);

template <class T>
void winograd_backward_data(const WinogradMethod& method,
                            View<const T> out_gradient,
                            const Filters<T>& filters,
                            const Region& region,
                            const InputGradient<T>& in_gradient,
                            T* workspace);

template <class T>
void winograd_backward_weights(const WinogradMethod& method,
                               View<const T> in,
                               View<const T> out_gradient,
                               const Region& region,
                               Index first_filter,
                               T* weight_gradient,
                               T* workspace);

}  // namespace tessera::engine
