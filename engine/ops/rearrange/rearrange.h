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

// out[(dy * stride + dx) * C + c][row][col] = in[c][row * stride + dy][col * stride + dx], C
// channels in all.
template <class T>
void space_to_depth_forward(
    Index stride, Index channels, View<const T> in, const Region& region, View<T> out);
template <class T>
void space_to_depth_backward(Index stride,
                             Index channels,
                             View<const T> out_gradient,
                             const Region& region,
                             View<T> in_gradient);

// Output channel j * groups + g is channel g * (channels / groups) + j of the input, `channels` in
// all.
template <class T>
void shuffle_channels_forward(
    Index groups, Index channels, View<const T> in, const Region& region, View<T> out);
template <class T>
void shuffle_channels_backward(Index groups,
                               Index channels,
                               View<const T> out_gradient,
                               const Region& region,
                               View<T> in_gradient);

// Darknet's reorg: the whole map of an image as flat memory. `in` is (C, H, W). Assigns out on the
// region.
template <class T>
void reorg_forward(const partitioner::Reorg& reorg,
                   const partitioner::MapShape& in_shape,
                   View<const T> in,
                   const partitioner::MapShape& out_shape,
                   const Region& region,
                   View<T> out);
template <class T>
void reorg_backward(const partitioner::Reorg& reorg,
                    const partitioner::MapShape& in_shape,
                    View<const T> out_gradient,
                    const partitioner::MapShape& out_shape,
                    const Region& region,
                    View<T> in_gradient);

// The cell of the input, as a flat (C, H, W) index, that flat index `out` of the output takes its
// value from.
[[nodiscard]] Index reorg_source(const partitioner::Reorg& reorg,
                                 const partitioner::MapShape& in_shape,
                                 Index out);

}  // namespace tessera::engine
