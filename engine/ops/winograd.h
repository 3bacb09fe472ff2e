// Winograd's convolution F(m x m, 3x3) (Lavin, Gray 2016): 3x3 filters of stride 1 in tiles of m x
// m outputs (m = 2 or 4), with 2.25 or 4 times fewer multiplications than the direct sum, and
// rounding errors that grow with m.
//
// Tiles lie on multiples of m in global coordinates. A cell's bits depend on all of the (m + 2)^2
// inputs of its tile: they are the same for any cut that lies on the grid, and equal to rounding
// for others. Cells outside what a region requires count as 0.

#pragma once

#include "engine/ops/convolution.h"

namespace engine {

// Elements of each workspace array that a pass over `filters` needs; `side` is m.
[[nodiscard]] ConvolutionWorkspaceSize winograd_workspace(const ConvolutionShape& shape,
                                                          Index side,
                                                          const Range& filters,
                                                          bool training);

// The passes, with the arguments of convolution.h, for a shape of size 3, stride 1 and one group.

template <class T>
void winograd_forward(const ConvolutionShape& shape,
                      Index side,
                      View<const T> in,
                      const T* weight,
                      const T* bias,
                      const Region& region,
                      View<T> out,
                      ConvolutionWorkspace<T>& workspace);

template <class T>
void winograd_backward_data(const ConvolutionShape& shape,
                            Index side,
                            View<const T> out_gradient,
                            const Filters<T>& filters,
                            const Region& region,
                            const Region& map,
                            View<T> in_gradient,
                            ConvolutionWorkspace<T>& workspace);

template <class T>
void winograd_backward_weights(const ConvolutionShape& shape,
                               Index side,
                               View<const T> in,
                               View<const T> out_gradient,
                               const Region& region,
                               Index first_filter,
                               T* weight_gradient,
                               ConvolutionWorkspace<T>& workspace);

}  // namespace engine
