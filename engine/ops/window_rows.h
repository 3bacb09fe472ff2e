// Backward to the data of five to eight channels, as the second layer of a small network has. Their
// gradient holds kNarrowLanes numbers a cell, so what a row of a window gets of an output are
// size * kNarrowLanes numbers side by side: one sum over filters, of which each number that is read
// meets all. Summed by channels alone it would meet half a vector.
//
// A cell's sum goes through the rows of windows that meet it from their first on, and in each
// through outputs from left to right: the same order for any part of the map. Only the direct
// kernel's own files include this.

#pragma once

#include "engine/ops/convolution.h"

namespace engine {

[[nodiscard]] bool has_window_rows(const ConvolutionShape& shape);

// Elements of scratch, for the weights of so many filters.
[[nodiscard]] Index window_rows_workspace(const ConvolutionShape& shape, Index filters);

// With the arguments of convolution_backward_data(), of a shape that has_window_rows(); assigns all
// cells that windows meet if asked to.
template <class T>
void window_rows_backward_data(const ConvolutionShape& shape,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const InputGradient<T>& in_gradient,
                               T* workspace);

}  // namespace engine
