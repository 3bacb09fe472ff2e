// Connected layers of few images: bound by reading the weights, which are taken straight from their
// rows. Sums are in the order of connected.h, so their bits are those of any number of images.
// Regions are of kFewImages or fewer, or empty. Only connected.cpp and connected_rows.cpp include
// this.

#pragma once

#include <vector>

#include "engine/ops/connected/connected.h"
#include "engine/ops/simd/block_kernels.h"

namespace tessera::engine {

inline constexpr Index kFewImages = kFewPixels;

// Offsets of the features (c, h, w) of an image in a view, from the first channel of cell (0, 0).
template <class T>
[[nodiscard]] std::vector<Index> feature_offsets(const partitioner::MapShape& map,
                                                 const View<T>& in) {
  std::vector<Index> offsets;
  offsets.reserve(static_cast<std::size_t>(map.volume()));
  for (Index c = 0; c < map.channels; ++c) {
    const Index channel = in.channel_offset(c);
    for (Index h = 0; h < map.rows; ++h) {
      for (Index w = 0; w < map.cols; ++w) {
        offsets.push_back(channel + h * in.row_stride() + w * in.block);
      }
    }
  }
  return offsets;
}

template <class T>
void rows_forward(const partitioner::MapShape& map,
                  View<const T> in,
                  const T* weight,
                  const T* bias,
                  View<T> out,
                  const Region& region);

// Adds, or assigns all of in_gradient.map for the region's images.
template <class T>
void rows_backward_data(const partitioner::MapShape& map,
                        View<const T> out_gradient,
                        const Filters<T>& weights,
                        const Region& region,
                        const InputGradient<T>& in_gradient);

// Adds to the rows of region.channels.
template <class T>
void rows_backward_weights(const partitioner::MapShape& map,
                           View<const T> in,
                           View<const T> out_gradient,
                           const Region& region,
                           T* weight_gradient);

}  // namespace tessera::engine
