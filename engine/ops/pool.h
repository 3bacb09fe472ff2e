// Pooling on any region of the map. What lies outside the map is never looked at: the window is
// clipped to it.

#pragma once

#include "engine/tensor.h"
#include "partitioner/network.h"

namespace engine {

// Assigns out, on the region, the largest value of each window of `in`; `map` is all of the input
// map.
template <class T>
void max_pool_forward(const partitioner::MaxPool& pool,
                      View<const T> in,
                      const Region& map,
                      const Region& region,
                      View<T> out);

// Adds each gradient of the region to the winner of its window: the first of the largest values in
// raster order of the whole map, so that all ranks that compute a cell agree.
template <class T>
void max_pool_backward(const partitioner::MaxPool& pool,
                       View<const T> in,
                       View<const T> out,
                       const Region& map,
                       View<const T> out_gradient,
                       const Region& region,
                       View<T> in_gradient);

// The winner's place in its window, row * size + col: assigns out on the region. For comparing
// runs.
template <class T>
void max_pool_winners(const partitioner::MaxPool& pool,
                      View<const T> in,
                      const Region& map,
                      const Region& region,
                      View<T> out);

// Assigns out (N, C, 1, 1) on the region the mean of all cells of the map.
template <class T>
void average_pool_forward(View<const T> in, const Region& map, const Region& region, View<T> out);

// Adds.
template <class T>
void average_pool_backward(View<const T> out_gradient,
                           const Region& map,
                           const Region& region,
                           View<T> in_gradient);

}  // namespace engine
