// The inner loops of what follows a convolution, on rows of cells: statistics, normalisation with
// its activation, pools, and their backward passes. Memory bounds them, so each does all that it
// can with a cell while it is there.
//
// `lanes` channels lie side by side in each cell; steps are elements from cell to cell. Rows of 16
// or 8 lanes whose steps are that too run on vectors.

#pragma once

#include "engine/tensor.h"
#include "partitioner/network.h"

namespace engine {

using partitioner::Activation;

inline constexpr Index kMostLanes = 16;

// What a row's channels are normalised with, lane by lane:
// sum = (x - mean) * inverse * scale + shift.
template <class T>
struct LaneNorms {
  alignas(kAlignment) T mean[kMostLanes] = {};
  alignas(kAlignment) T inverse[kMostLanes] = {};
  alignas(kAlignment) T scale[kMostLanes] = {};
  alignas(kAlignment) T shift[kMostLanes] = {};
};

template <class T>
struct NormalizeRow {
  const T* x = nullptr;
  Index x_step = 0;
  T* y = nullptr;  // forward: the output; backward: the gradient of the output
  Index y_step = 0;
  Index cells = 0;
  Index lanes = 0;
  const LaneNorms<T>* norms = nullptr;
  Activation activation = Activation::Linear;
};

// Backward through mean and variance: y = scale * (y - shift - (x - mean) * inverse).
template <class T>
struct NormalizeGradientRow {
  const T* x = nullptr;
  Index x_step = 0;
  T* y = nullptr;
  Index y_step = 0;
  Index cells = 0;
  Index lanes = 0;
  const LaneNorms<T>* norms = nullptr;
};

// One cell of a max-pool's output: the largest of `rows` x `cols` cells.
template <class T>
struct PoolWindow {
  const T* x = nullptr;
  Index x_row = 0;
  Index x_step = 0;
  Index rows = 0;
  Index cols = 0;
  Index lanes = 0;
};

// A row of a depthwise convolution: y = (y +) bias + sum over taps t of weights[t] * x[offsets[t]],
// lane by lane.
template <class T>
struct DepthwiseRow {
  const T* x = nullptr;
  Index x_step = 0;
  const Index* offsets = nullptr;
  Index taps = 0;
  const T* weights = nullptr;  // (taps, kMostLanes)
  const T* bias = nullptr;     // kMostLanes, or none
  T* y = nullptr;
  Index y_step = 0;
  Index cells = 0;
  Index lanes = 0;
};

// Two rows of as many cells: one tap of a depthwise convolution, and a row of gradients.
template <class T>
struct RowPair {
  const T* x = nullptr;
  Index x_step = 0;
  Index y_step = 0;
  Index cells = 0;
  Index lanes = 0;
};

// What one vector width makes of them.
template <class T>
struct RowKernels {
  // mean[lane] and squares[lane]: of the row's cells, and of their deviations from it, in double.
  void (*moments)(const T* x, Index step, Index cells, Index lanes, double* mean, double* squares);
  // Assigns y = activation(x); both may be the same row.
  void (*activate)(const RowPair<T>& rows, Activation activation, T* y);
  // Assigns y = activation(normalised x).
  void (*normalize)(const NormalizeRow<T>& row);
  // Multiplies y by the activation's slope, and adds y to shift[lane] and y * (x - mean) * inverse
  // to scale[lane].
  void (*gradient_sums)(const NormalizeRow<T>& row, double* shift, double* scale);
  void (*normalize_gradient)(const NormalizeGradientRow<T>& row);
  // Assigns the largest value of each lane.
  void (*pool)(const PoolWindow<T>& window, T* y);
  // Adds gradient[lane] to the first cell, row by row, that holds the largest value y[lane];
  // in_gradient has strides of its own.
  void (*pool_gradient)(const PoolWindow<T>& window,
                        const T* y,
                        const T* gradient,
                        T* in_gradient,
                        Index in_gradient_row,
                        Index in_gradient_step);
  // Assigns y.
  void (*depthwise)(const DepthwiseRow<T>& row);
  void (*add_scaled)(const RowPair<T>& rows, const T* weight, T* y);  // y += weight[lane] * x
  void (*add_products)(const RowPair<T>& rows, const T* y, T* sums);  // sums[lane] += x * y
};

// Those of the widest vectors that this machine has.
template <class T>
[[nodiscard]] const RowKernels<T>& row_kernels();

// Activations that vectors do not compute, one number at a time.
[[nodiscard]] float activation_value(Activation activation, float x);
[[nodiscard]] double activation_value(Activation activation, double x);
// The slope at x, where the value is activation_value(x).
[[nodiscard]] float activation_slope(Activation activation, float x);
[[nodiscard]] double activation_slope(Activation activation, double x);

}  // namespace engine
