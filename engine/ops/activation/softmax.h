// Softmax over runs of plain (N, C, H, W) order, and its losses.

#pragma once

#include "engine/base/tensor.h"

namespace tessera::engine {

// `size` values, `stride` apart, make up one distribution.
struct SoftmaxRun {
  Index size = 0;
  Index stride = 1;
  double temperature = 1;
};

// Assigns out; in and out may be the same.
template <class T>
void softmax_forward(const SoftmaxRun& run, const T* in, T* out);

// Adds the product of out_gradient with the Jacobian of the softmax whose values are `out`.
template <class T>
void softmax_backward(const SoftmaxRun& run, const T* out, const T* out_gradient, T* in_gradient);

}  // namespace tessera::engine
