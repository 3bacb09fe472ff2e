// Pooling on any region of the map. What lies outside the map is never looked at: the window is
// clipped to it.

#pragma once

#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

// Where a max-pool works: `map` is all of its input map, `region` the part of the output.
struct PoolSite {
  partitioner::MaxPool pool;
  Region map;
  Region region;
};

// What it makes; no argmax where its view is of nothing.
template <class T>
struct Pooled {
  View<T> values;
  View<ArgmaxOffset> argmax;
};

// Assigns, on the region, the largest value of each window of `in`, and which cell of the window
// holds it: the first of the largest in raster order of the whole map, so that all ranks that
// compute a cell agree.
template <class T>
void max_pool_forward(const PoolSite& site, View<const T> in, const Pooled<T>& out);

// Adds each gradient of the region to the argmax of its window.
template <class T>
void max_pool_backward(const PoolSite& site,
                       View<const T> out_gradient,
                       View<const ArgmaxOffset> argmax,
                       View<T> in_gradient);

// Assigns, on the region, the largest of the channels k, k + outputs, ... in `channels` of each
// cell, and which of them holds it: the first of the largest.
template <class T>
void channel_pool_forward(Index outputs,
                          const Range& channels,
                          View<const T> in,
                          const Region& region,
                          const Pooled<T>& out);

// Adds each gradient of the region to the channel that held the largest.
template <class T>
void channel_pool_backward(Index outputs,
                           View<const T> out_gradient,
                           View<const ArgmaxOffset> argmax,
                           const Region& region,
                           View<T> in_gradient);

// Assigns out (N, C, 1, 1) on the region the mean of all cells of the map.
template <class T>
void average_pool_forward(View<const T> in, const Region& map, const Region& region, View<T> out);

// Adds.
template <class T>
void average_pool_backward(View<const T> out_gradient,
                           const Region& map,
                           const Region& region,
                           View<T> in_gradient);

}  // namespace tessera::engine
