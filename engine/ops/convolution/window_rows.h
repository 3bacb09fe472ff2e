// Backward to the data of five to eight channels, as the second layer of a small network has. What
// a row of a window gets of an output are size * channels numbers side by side, in hardly more
// vectors than they fill: sums over filters and over the rows of windows that meet a row of cells,
// of which each number that is read meets all. Summed by channels alone it would meet half a
// vector.
//
// A cell's sum goes through outputs from left to right, and in each through the rows of windows
// that meet the cell from their first on: the same order for any part of the map. Only the direct
// kernel's own files include this.

#pragma once

#include "engine/ops/convolution/kernel_passes.h"

namespace tessera::engine {

[[nodiscard]] bool has_window_rows(const ConvolutionShape& shape);

// Elements of scratch, for the weights of so many filters.
[[nodiscard]] Index window_rows_workspace(const ConvolutionShape& shape, Index filters);

// Of a shape that has_window_rows(); assigns all cells that windows meet if asked to.
template <class T>
void window_rows_backward_data(const ConvolutionShape& shape,
                               const BackwardDataArguments<T>& given);

}  // namespace tessera::engine
