// Layers that only move or add cells, or take values between them. Backward adds. Regions are of
// the output; they may be any part of it.

#pragma once

#include "engine/base/tensor.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// Where an output cell comes from: channel c of the output reads channel c + channel_shift; row r
// reads (r * row_scale) when sampled, r / repeat when repeated.
struct CellMap {
  Index channel_shift = 0;
  Index sample = 1;  // reads cell r * sample
  Index repeat = 1;  // reads cell r / repeat
  Index every = 1;   // only output cells whose row and column are multiples
};

// out = factor * in, or with `add` out += factor * in, for the cells of the region that the map
// reaches.
template <class T>
void copy_cells(
    const CellMap& map, T factor, bool add, View<const T> in, const Region& region, View<T> out);

// out = first + factor * second, each cell from the same place.
template <class T>
void add_cells(
    T factor, View<const T> first, View<const T> second, const Region& region, View<T> out);

// in_gradient += factor * out_gradient; with `assign`, of a map that samples nothing, the cells
// that the region reads begin with 0.
template <class T>
void copy_cells_backward(const CellMap& map,
                         T factor,
                         View<const T> out_gradient,
                         const Region& region,
                         View<T> in_gradient,
                         bool assign = false);

// Multiplies the cells of the region whose row and column are multiples of `every`.
template <class T>
void scale_cells(T factor, Index every, const Region& region, View<T> out);

// A map of rows x cols made `stride` times as large, see partitioner::between_cells().
struct FinerGrid {
  Index stride = 2;
  Index rows = 0;
  Index cols = 0;
};

// out = factor * in between its cells; backward adds to `cells` of the input, those that the region
// requires.
template <class T>
void interpolate_forward(
    const FinerGrid& grid, T factor, View<const T> in, const Region& region, View<T> out);
template <class T>
void interpolate_backward(const FinerGrid& grid,
                          T factor,
                          View<const T> out_gradient,
                          const Region& region,
                          const Region& cells,
                          View<T> in_gradient);

// Layers that give each number of their input, whose maps are `in_shape`, a place of its own in the
// output: partitioner::Reorg, SpaceToDepth and ChannelShuffle. Forward assigns out on the region;
// backward adds, or assigns.
template <class Layer, class T>
void permute_forward(const Layer& layer,
                     const partitioner::MapShape& in_shape,
                     View<const T> in,
                     const Region& region,
                     View<T> out);
template <class Layer, class T>
void permute_backward(const Layer& layer,
                      const partitioner::MapShape& in_shape,
                      View<const T> out_gradient,
                      const Region& region,
                      View<T> in_gradient,
                      bool assign = false);

}  // namespace tessera::engine
