// The inner loops of every convolution, on vectors of kBlockChannels output channels. Everything
// around them only works out which numbers meet.
//
// A sum's order is the order of its terms, whatever the number of pixels done at once and whatever
// the machine's vector width: a cell computed by two ranks has the same bits on both.

#pragma once

#include "engine/base/tensor.h"

namespace tessera::engine {

inline constexpr Index kBlockChannels = 16;
inline constexpr Index kNarrowChannels = kBlockChannels / 2;  // where that many channels are all

// Throws InputError where the environment asks for vectors with TESSERA_VECTORS that
// nobody knows: they are "generic", "avx2", "avx512", "cortex-a53" and "neon".
void expect_known_vectors();

// Part of a weighted sum: terms read at `offset` from the pixel, with kBlockChannels weights each.
template <class T>
struct Tap {
  Index offset = 0;
  const T* weights = nullptr;  // (terms, kBlockChannels), aligned to kAlignment
};

inline constexpr Index kMostBlocks = 2;  // vectors of output channels that are done at once

// sums[block][p][lane] = start + sum over taps, then over terms t, of tap.weights[block][t][lane] *
// in[p * in_step + tap.offset + offsets[t]], added up in this order
template <class T>
struct WeightedSum {
  const T* in = nullptr;
  Index in_step = 0;  // elements from pixel to pixel
  const Tap<T>* taps = nullptr;
  Index tap_count = 0;
  const Index* offsets = nullptr;
  Index terms = 0;
  Index weights_block = 0;  // elements from the weights of one block to those of the next
  const T* start =
      nullptr;  // (blocks, kBlockChannels), aligned; if null, the sums start with what they hold
  T* sums = nullptr;  // kBlockChannels of each pixel, aligned
  Index sums_step = 0;
  Index sums_block = 0;
};

// sums[block][t][lane] += sum over pixels, row by row, of gradient[block][lane] * in[offsets[t]]
template <class T>
struct OuterSum {
  const T* gradient = nullptr;  // kBlockChannels of the first pixel, aligned, as far apart as
                                // pixels; or kNarrowChannels for a narrow sum
  Index gradient_row = 0;       // elements from row to row
  Index gradient_block = 0;
  const T* in = nullptr;
  Index in_row = 0;
  Index in_step = 0;
  Index rows = 0;
  Index cols = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;  // (terms, kBlockChannels) of each block, aligned
  Index sums_block = 0;
};

// Sums over windows of neighbouring outputs in a row: pixel p has the number of cell x, lane l of
// its window's row at sums[p * sums_step + x * cell_step + l]; windows are `stride` cells apart.
// cells[x - first][lane] += those of all windows that have cell x, counted from where the first
// window begins, window after window; kNarrowChannels numbers of each, something beyond cell_step.
template <class T>
struct WindowSums {
  const T* sums = nullptr;
  Index sums_step = 0;
  Index cell_step = kNarrowChannels;
  Index pixels = 0;
  Index stride = 1;
  Index size = 0;   // cells of a window's row
  Index first = 0;  // of the cells that there are
  Index end = 0;
  T* cells = nullptr;  // kNarrowChannels each, aligned
};

// Sums whose lanes are pixels of one row, for some filters. Vectors of kBlockChannels pixels begin
// at starts[vector] and may overlap.
// cells[(starts[vector] + lane) * cells_step + k] = start[k] + sum over t of weights[t][k] *
// in[starts[vector] + lane + offsets[t]]; cells_step numbers of each cell are assigned, those
// beyond the filters something.
template <class T>
struct PlaneSum {
  const T* in = nullptr;
  const Index* offsets = nullptr;
  Index terms = 0;
  const T* weights = nullptr;  // (terms, kNarrowChannels), 0 beyond the filters
  const T* start = nullptr;    // (kNarrowChannels), likewise
  const Index* starts = nullptr;
  Index vectors = 0;
  T* cells = nullptr;
  Index cells_step = 0;  // kNarrowChannels or fewer
};

// The same way back: sums[t][k][lane] += sum over rows and vectors of
// gradient[row][vector][k][lane] * in[row * in_row + starts[vector] + lane + offsets[t]]
template <class T>
struct PlaneOuterSum {
  const T* gradient = nullptr;  // (rows, vectors, kNarrowChannels, kBlockChannels), aligned
  const T* in = nullptr;
  Index in_row = 0;
  Index rows = 0;
  const Index* starts = nullptr;
  Index vectors = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;  // (terms, kNarrowChannels, kBlockChannels), aligned
};

// The gradient of one filter's weights where a max-pool follows: but for its argmax cells, outputs
// have no gradient. What a row of taps reads lies side by side, and sums are of whole parts of
// kNarrowChannels: more is read, and summed, than there are taps.
// sums[r][x] += sum over windows of the pool, row by row, of gradient[window] *
// in[place + r * in_row + x], where place is where the window begins + places[argmax[window]];
// windows whose argmax has a place below 0 are left out
template <class T>
struct ArgmaxSum {
  const T* gradient = nullptr;
  Index gradient_row = 0;   // elements from row to row of windows
  Index gradient_step = 0;  // from window to window
  const unsigned char* argmax = nullptr;
  Index argmax_row_step = 0;
  Index argmax_step = 0;
  Index rows = 0;  // of windows
  Index cols = 0;
  const Index* places = nullptr;
  const T* in = nullptr;
  Index in_windows = 0;  // from row to row of windows
  Index in_window = 0;
  Index in_row = 0;  // from row to row of taps
  Index tap_rows = 0;
  T* sums = nullptr;  // (tap_rows, parts) in whole vectors of kBlockChannels, aligned
};

// Products with rows of weights as they lie, for few pixels: to pack weights would take longer than
// to meet them. Terms are added up in the same order as by the sums of packed ones.

inline constexpr Index kFewPixels = 4;

// sums[p][row] += sum over t of weights[row * weights_row + t] * in[p * in_step + offsets[t]]
template <class T>
struct RowSums {
  const T* weights = nullptr;
  Index weights_row = 0;
  Index terms = 0;
  const T* in = nullptr;
  Index in_step = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;  // (pixels, kBlockChannels)
};

// sums[p * sums_step + t] += sum over rows of weights[row * weights_row + t] * in[p * in_step +
// offsets[row]]
template <class T>
struct ColumnSums {
  const T* weights = nullptr;
  Index weights_row = 0;
  Index terms = 0;
  const T* in = nullptr;
  Index in_step = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;
  Index sums_step = 0;
};

// weights[row * weights_row + t] += sum over p of in[p * in_step + t] * gradient[p * gradient_step
// + offsets[row]]
template <class T>
struct OuterRows {
  T* weights = nullptr;
  Index weights_row = 0;
  Index terms = 0;
  const T* in = nullptr;
  Index in_step = 0;
  const T* gradient = nullptr;
  Index gradient_step = 0;
  const Index* offsets = nullptr;
};

// The two products of Winograd's convolution, for one position of the transformed tiles. Arrays are
// in blocks of kBlockChannels channels, the elements from block to block given; all aligned.

// sums[block][p][lane] += (or =) sum over c of weights[block][c][lane] * in[c /
// kBlockChannels][p][c % kBlockChannels]
template <class T>
struct PixelProduct {
  const T* in = nullptr;
  Index in_block = 0;
  Index channels = 0;
  const T* weights = nullptr;
  Index weights_block = 0;
  T* sums = nullptr;
  Index sums_block = 0;
  bool assign = true;
};

inline constexpr Index kProductChannels = 8;  // of a block of inputs that are done at once

// sums[block][c][lane] += (or =) sum over p of gradient[block][p][lane] * in[p][c], for
// kProductChannels channels c of one block of inputs
template <class T>
struct WeightProduct {
  const T* in = nullptr;
  const T* gradient = nullptr;
  Index gradient_block = 0;
  Index pixels = 0;
  T* sums = nullptr;
  Index sums_block = 0;
  bool assign = false;
};

// Winograd's transforms of tiles whose outputs are kSide x kSide cells of a 3x3 convolution; the
// transformed tile has (kSide + 2)^2 positions. One vector of channels at a time: cells side by
// side, and a position of neighbouring tiles, are kBlockChannels elements apart.

// Cells of a tile that there are; what is outside counts as 0 and is not touched.
struct TileCells {
  Index row_begin = 0;
  Index row_end = 0;
  Index col_begin = 0;
  Index col_end = 0;

  [[nodiscard]] bool all_cols(Index side) const { return col_begin == 0 && col_end == side; }
  [[nodiscard]] bool all(Index side) const {
    return row_begin == 0 && row_end == side && all_cols(side);
  }
};

// Squares of cells of neighbouring tiles, to positions.
template <class T>
struct SquareTransform {
  const T* cells = nullptr;
  Index row_step = 0;   // elements from row to row
  Index tile_step = 0;  // from the square of a tile to that of the next
  TileCells inside;     // of each square
  Index tiles = 0;
  T* positions = nullptr;
  Index position_step = 0;
};

// Sums at positions, to the outputs of neighbouring tiles.
template <class T>
struct SumTransform {
  const T* positions = nullptr;
  Index position_step = 0;
  T* cells = nullptr;
  Index row_step = 0;
  Index tile_step = 0;
  TileCells inside;
  Index tiles = 0;
  const T* bias = nullptr;  // kBlockChannels numbers to add, or none
  bool add = false;         // to what is there already, or assign
};

// 3x3 filters, of `filters` output channels, to positions; 0 for further ones.
template <class T>
struct FilterTransform {
  const T* taps = nullptr;
  Index filter_step = 0;   // elements from output channel to output channel
  Index channel_step = 0;  // from input channel to input channel
  Index filters = kBlockChannels;
  Index channels = 0;
  bool turned = false;     // by 180 degrees
  T* positions = nullptr;  // (position, input channel, kBlockChannels)
  Index position_step = 0;
};

// Gradients of transformed filters, to those of the filters, which they are added to.
template <class T>
struct FilterGradientTransform {
  const T* positions = nullptr;  // (position, input channel, kBlockChannels)
  Index position_step = 0;
  T* taps = nullptr;
  Index filter_step = 0;
  Index channel_step = 0;
  Index filters = kBlockChannels;
  Index channels = 0;
};

// A matrix to transpose: to[col * to_step + row] = from[row * from_step + col]
template <class T>
struct Transpose {
  const T* from = nullptr;
  Index from_step = 0;
  T* to = nullptr;
  Index to_step = 0;
};

// What one vector width makes of all these.
template <class T>
struct BlockKernels {
  // Blocks that weighted_sum and outer_sum should be given, kMostBlocks or fewer.
  Index sum_blocks;
  Index sum_pixels;  // the most that one call of weighted_sum takes
  // Assigns job.sums; 1 <= pixels <= sum_pixels, 1 <= blocks <= sum_blocks.
  void (*weighted_sum)(const WeightedSum<T>& job, Index pixels, Index blocks);
  // Adds to job.sums; 1 <= terms, 1 <= blocks <= sum_blocks.
  void (*outer_sum)(const OuterSum<T>& job, Index terms, Index blocks);

  // The same of one block, of whose channels only the first kNarrowChannels count: others of the
  // sums are not touched, those of weights and start not read.
  Index narrow_pixels;  // the most that one call of narrow_sum takes
  void (*narrow_sum)(const WeightedSum<T>& job, Index pixels);
  void (*narrow_outer_sum)(const OuterSum<T>& job, Index terms);
  void (*add_windows)(const WindowSums<T>& job);
  // 1 <= filters <= kNarrowChannels; more than plane_filters are as well computed without.
  Index plane_filters;
  void (*plane_sum)(const PlaneSum<T>& job, Index filters);
  // None where vectors are so short that it would have to read each number for each sum, as others
  // do that need no planes.
  void (*plane_outer_sum)(const PlaneOuterSum<T>& job, Index filters, Index terms);

  // Sums 1, 2, 3 or 5 parts.
  void (*argmax_sum)(const ArgmaxSum<T>& job, Index parts);

  // 1 <= pixels <= kFewPixels.
  void (*row_sums)(const RowSums<T>& job, Index rows, Index pixels);  // rows <= kBlockChannels
  void (*column_sums)(const ColumnSums<T>& job, Index rows, Index pixels);
  void (*outer_rows)(const OuterRows<T>& job, Index rows, Index pixels);

  void (*transpose)(const Transpose<T>& job, Index rows, Index cols);       // assigns
  void (*add_transposed)(const Transpose<T>& job, Index rows, Index cols);  // adds

  Index product_pixels;  // the most that one call of pixel_product takes
  // 1 <= pixels <= product_pixels, 1 <= blocks <= kMostBlocks.
  void (*pixel_product)(const PixelProduct<T>& job, Index pixels, Index blocks);
  void (*weight_product)(const WeightProduct<T>& job, Index blocks);

  // By side of the outputs: [0] 2x2, [1] 4x4.
  void (*transform_input[2])(const SquareTransform<T>&);     // of windows
  void (*transform_gradient[2])(const SquareTransform<T>&);  // of output gradients
  void (*transform_sums[2])(const SumTransform<T>&);
  void (*transform_filters[2])(const FilterTransform<T>&);
  void (*transform_filter_gradients[2])(const FilterGradientTransform<T>&);
};

// The kernels for the widest vectors that this machine has.
template <class T>
[[nodiscard]] const BlockKernels<T>& block_kernels();

}  // namespace tessera::engine
