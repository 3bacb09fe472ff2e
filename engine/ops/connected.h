// Products with a dense matrix, on plain row-major arrays: images by features. Eigen does the work,
// so sums are in its order.

#pragma once

#include "engine/tensor.h"

namespace engine {

struct ConnectedSize {
  Index images = 0;   // N
  Index inputs = 0;   // C, features that each output sees
  Index outputs = 0;  // K
};

// Assigns out (N, K) = in (N, C) * weight (K, C)^T + bias (K); bias may be null.
template <class T>
void connected_forward(
    const ConnectedSize& size, const T* in, const T* weight, const T* bias, T* out);

// Assigns in_gradient (N, C) = out_gradient (N, K) * weight (K, C).
template <class T>
void connected_backward_data(const ConnectedSize& size,
                             const T* out_gradient,
                             const T* weight,
                             T* in_gradient);

// Adds out_gradient^T * in to weight_gradient (K, C).
template <class T>
void connected_backward_weights(const ConnectedSize& size,
                                const T* in,
                                const T* out_gradient,
                                T* weight_gradient);

}  // namespace engine
