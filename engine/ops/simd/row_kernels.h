// The inner loops of what follows a convolution, on rows of cells: statistics, normalisation with
// its activation, pools, and their backward passes. Memory bounds them, so each does all that it
// can with a cell while it is there.
//
// `channels` channels lie side by side in each cell; steps are elements from cell to cell. Rows of
// 16 or 8 channels whose steps are that too run on vectors.

#pragma once

#include <cstdint>

#include "engine/base/tensor.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

using partitioner::Activation;

inline constexpr Index kMostChannels = 16;

// What a row's channels are normalised with, channel by channel:
// sum = (x - mean) * inverse * scale + shift.
template <class T>
struct BlockNorms {
  alignas(kAlignment) T mean[kMostChannels] = {};
  alignas(kAlignment) T inverse[kMostChannels] = {};
  alignas(kAlignment) T scale[kMostChannels] = {};
  alignas(kAlignment) T shift[kMostChannels] = {};
};

template <class T>
struct NormalizeRow {
  const T* x = nullptr;
  Index x_step = 0;
  T* y = nullptr;
  Index y_step = 0;
  Index cells = 0;
  Index channels = 0;
  const BlockNorms<T>* norms = nullptr;
  Activation activation = Activation::Linear;
};

// The way back through normalisation and activation, from the gradient of the output to that of x.
template <class T>
struct NormalizeGradientRow {
  const T* x = nullptr;
  Index x_step = 0;
  const T* gradient = nullptr;
  Index gradient_step = 0;
  Index cells = 0;
  Index channels = 0;
  const BlockNorms<T>* norms = nullptr;
  Activation activation = Activation::Linear;
};

// The way back through an activation alone, whose values are y. x is looked at only where the slope
// needs it.
template <class T>
struct ActivationGradientRow {
  const T* x = nullptr;
  Index x_step = 0;
  const T* y = nullptr;
  Index y_step = 0;
  T* gradient = nullptr;  // of y; becomes that of x
  Index gradient_step = 0;
  Index cells = 0;
  Index channels = 0;
  Activation activation = Activation::Linear;
};

// The number of a cell in the window of a max-pool, row * size + column.
using ArgmaxOffset = std::uint8_t;

// Windows of a max-pool side by side, `rows` x `cols` cells each of those that a window has.
template <class T>
struct PoolRow {
  const T* x = nullptr;  // the first cell of the first window
  Index x_row = 0;
  Index x_step = 0;
  Index x_window = 0;  // elements from window to window
  Index rows = 0;
  Index cols = 0;
  Index windows = 0;
  Index channels = 0;
  T* y = nullptr;
  Index y_step = 0;
  ArgmaxOffset* argmax = nullptr;  // or none
  Index argmax_step = 0;
  Index first = 0;  // number of a window's first cell
  Index size = 0;   // from the number of a cell to that of the cell below
};

// One row of cells of a max-pool's windows side by side, on the way back: the gradients of the
// windows, which only their argmax cells have.
template <class T>
struct ArgmaxRow {
  const T* gradient = nullptr;  // of the windows
  Index gradient_step = 0;
  const ArgmaxOffset* argmax = nullptr;
  Index argmax_step = 0;
  Index windows = 0;
  Index cols = 0;  // of each window
  Index channels = 0;
  Index first = 0;  // number of the first cell of the row in its window
};

template <class T>
struct UnpoolRow {
  ArgmaxRow<T> from;
  T* x = nullptr;
  Index x_step = 0;
  Index x_window = 0;
};

// The sums of NormalizeGradientRow over such cells; windows are cols * x_step apart.
template <class T>
struct PooledGradientRow {
  ArgmaxRow<T> from;
  const T* x = nullptr;
  Index x_step = 0;
  const BlockNorms<T>* norms = nullptr;
  Activation activation = Activation::Linear;
};

// A tap of a depthwise convolution: where its cell of x and its weights lie.
struct DepthwiseTap {
  Index x = 0;
  Index weights = 0;
};

// Cells of a depthwise convolution, or of its gradient: y = start + sum over taps t of
// weights[t.weights] * x[t.x], channel by channel.
template <class T>
struct DepthwiseCells {
  const T* x = nullptr;
  Index x_row = 0;  // elements for each row of y
  Index x_step = 0;
  const DepthwiseTap* taps = nullptr;
  Index tap_count = 0;
  const T* weights = nullptr;
  const T* start = nullptr;  // kMostChannels; if null, y starts with what it holds
  T* y = nullptr;
  Index y_row = 0;
  Index y_step = 0;
  Index rows = 0;  // of y
  Index cols = 0;
  Index channels = 0;
};

// The gradient of a depthwise convolution's weights: sums[t][lane] += sum over cells of
// gradient[lane] * x[offsets[t]]
template <class T>
struct DepthwiseSums {
  const T* x = nullptr;
  Index x_row = 0;  // elements for each row of the gradient
  Index x_step = 0;
  const T* gradient = nullptr;
  Index gradient_row = 0;
  Index gradient_step = 0;
  Index rows = 0;  // of the gradient
  Index cols = 0;
  Index channels = 0;
  const Index* offsets = nullptr;
  T* sums = nullptr;  // (taps, kMostChannels)
};

// Two rows of as many cells.
template <class T>
struct RowPair {
  const T* x = nullptr;
  Index x_step = 0;
  Index y_step = 0;
  Index cells = 0;
  Index channels = 0;
};

// What one vector width makes of them.
template <class T>
struct RowKernels {
  // mean[lane] and squares[lane]: of the row's cells, and of their deviations from it, in double.
  void (*moments)(
      const T* x, Index step, Index cells, Index channels, double* mean, double* squares);
  // Adds each cell to sums[lane], in their order.
  void (*add_cells)(const T* x, Index step, Index cells, Index channels, double* sums);
  // Likewise x times y.
  void (*add_products)(const RowPair<T>& rows, const T* y, double* sums);
  // Assigns y = activation(x); both may be the same row.
  void (*activate)(const RowPair<T>& rows, Activation activation, T* y);
  // Assigns y = activation(normalised x).
  void (*normalize)(const NormalizeRow<T>& row);
  // With g the gradient times the activation's slope: adds g to shift[lane], g * (x - mean) *
  // inverse to scale[lane]. Where the activation takes an exponential, also assigns `through` g,
  // which may be the gradient and lies as that does; if it is not null.
  void (*gradient_statistics)(const NormalizeGradientRow<T>& row,
                              double* shift,
                              double* scale,
                              T* through);
  // The same bits as gradient_statistics of the cells' gradients.
  void (*pooled_gradient_statistics)(const PooledGradientRow<T>& row, double* shift, double* scale);
  // Assigns to[...] = by.scale * (g - by.shift - (x - by.mean) * by.inverse). `to` may be x.
  void (*normalize_gradient)(const NormalizeGradientRow<T>& row, const BlockNorms<T>& by, T* to);
  // Adds each gradient of x to sums[lane].
  void (*activation_gradient)(const ActivationGradientRow<T>& row, double* sums);
  // Assigns y the largest value of each window and channel, and the number of the first cell that
  // holds it.
  void (*pool)(const PoolRow<T>& row);
  void (*unpool)(const UnpoolRow<T>& row);        // assigns x the gradient, or 0 if it did not win
  void (*add_unpooled)(const UnpoolRow<T>& row);  // adds it
  void (*depthwise)(const DepthwiseCells<T>& job);  // assigns y
  Index depthwise_taps;  // the most that one call of depthwise_sums takes
  void (*depthwise_sums)(const DepthwiseSums<T>& job, Index taps);
};

// The kernels for the widest vectors that this machine has.
template <class T>
[[nodiscard]] const RowKernels<T>& row_kernels();

// Activations that vectors do not compute, one number at a time.
[[nodiscard]] float activation_value(Activation activation, float x);
[[nodiscard]] double activation_value(Activation activation, double x);
// The slope at x, where the value is activation_value(x).
[[nodiscard]] float activation_slope(Activation activation, float x);
[[nodiscard]] double activation_slope(Activation activation, double x);
// The slope at x, where the value is y.
[[nodiscard]] float activation_slope(Activation activation, float x, float y);
[[nodiscard]] double activation_slope(Activation activation, double x, double y);

}  // namespace tessera::engine
