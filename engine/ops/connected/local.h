// Convolutions whose weights differ from cell to cell of the output. Each output cell is summed in
// the order c, fh, fw whatever the region; cells outside the map are 0.

#pragma once

#include "engine/base/tensor.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// The layer, its whole input map, its output's, and the channel that the first of the parameters
// belongs to: weights are (filters, rows x columns of the output, C, FH, FW), biases (filters, rows
// x columns).
struct LocalSite {
  partitioner::Local layer;
  Region in_map;
  partitioner::MapShape out;
  Index first_filter = 0;
};

// Assigns out on the region.
template <class T>
void local_forward(const LocalSite& site,
                   View<const T> in,
                   const T* weight,
                   const T* bias,
                   const Region& region,
                   View<T> out);

// Adds to the gradient of the input what the output gradient on the region says of it.
template <class T>
void local_backward_data(const LocalSite& site,
                         View<const T> out_gradient,
                         const T* weight,
                         const Region& region,
                         View<T> in_gradient);

// Add to the gradients of weights, and of biases.
template <class T>
void local_backward_weights(const LocalSite& site,
                            View<const T> in,
                            View<const T> out_gradient,
                            const Region& region,
                            T* weight_gradient);
template <class T>
void local_backward_biases(const LocalSite& site,
                           View<const T> out_gradient,
                           const Region& region,
                           T* bias_gradient);

}  // namespace tessera::engine
