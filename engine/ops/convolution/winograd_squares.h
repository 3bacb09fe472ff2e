// Winograd's transforms of tiles between the views of maps and transformed tiles: in place where a
// view's blocks are vectors of channels, else by way of a copy. Only winograd.cpp and
// winograd_weights.cpp include this.

#pragma once

#include <algorithm>
#include <array>

#include "engine/ops/convolution/convolution.h"
#include "engine/ops/convolution/winograd_tiles.h"
#include "engine/ops/loops/lines.h"

namespace tessera::engine {

[[nodiscard]] inline Range grow(const Range& range, Index before, Index after) {
  return {range.begin - before, range.end + after};
}

// The input cells that a 3x3 convolution requires for `region`.
[[nodiscard]] inline Region window_of(const ConvolutionShape& shape, const Region& region) {
  const auto cells = [](const Range& outputs, Index padding) {
    return grow(outputs, padding, kFilterSide - 1 - padding);
  };
  return {region.images,
          {0, shape.channels},
          cells(region.rows, shape.padding.rows),
          cells(region.cols, shape.padding.cols)};
}

// Where the arrays of BlockKernels have the transforms of tiles of side x side outputs.
[[nodiscard]] inline std::size_t transform_number(Index side) {
  return static_cast<std::size_t>(side / 2 - 1);
}

// Channels of block number `block` of `channels`.
[[nodiscard]] inline Range block_channels(const Range& channels, Index block) {
  const Index first = channels.begin + block * kBlockChannels;
  return {first, std::min(first + kBlockChannels, channels.end)};
}

// A square of kBlockChannels channels, (side, side, kBlockChannels), of views that hold those
// channels otherwise.
template <class T>
using SquareCopy =
    std::array<T, static_cast<std::size_t>(kLargestWindow* kLargestWindow* kBlockChannels)>;

// Calls visit(copy, cell) for each number of the copy that the view has a cell for.
template <class T, class V, class Visit>
void for_each_copied(SquareCopy<T>& copy,
                     const View<V>& view,
                     const Range& channels,
                     const SquareRun& square,
                     Index side,
                     Visit visit) {
  const TileCells& inside = square.inside;
  for (Index row = inside.row_begin; row < inside.row_end; ++row) {
    for (Index col = inside.col_begin; col < inside.col_end; ++col) {
      T* channel_block = copy.data() + (row * side + col) * kBlockChannels;
      for (Index c = channels.begin; c < channels.end; ++c) {
        visit(channel_block[c - channels.begin],
              view.at(square.image, c, square.row + row, square.col + col));
      }
    }
  }
}

// Squares of the channels `squares.cells.channels` of a view, to be transformed.
template <class T>
struct SquareSource {
  void (*transform)(const SquareTransform<T>&) = nullptr;
  View<const T> view;
  TileSquares squares;
};

template <class T>
void transform_run(const SquareSource<T>& from,
                   const Range& channels,
                   const SquareRun& run,
                   Index tile_side,
                   SquareTransform<T> job) {
  job.inside = run.inside;
  if (is_whole_block(channels, from.view, kBlockChannels)) {
    job.cells = line_start(from.view, channels, run.image, run.row, run.col);
    job.row_step = from.view.row_stride();
    job.tile_step = tile_side * kBlockChannels;
    job.tiles = run.tiles;
    from.transform(job);
    return;
  }
  alignas(kAlignment) SquareCopy<T> copy{};
  job.cells = copy.data();
  job.row_step = from.squares.side * kBlockChannels;
  job.tiles = 1;
  for (Index tile = 0; tile < run.tiles; ++tile) {
    SquareRun square = run;
    square.col += tile * tile_side;
    for_each_copied(
        copy, from.view, channels, square, from.squares.side, [](T& lane, const T& cell) {
          lane = cell;
        });
    from.transform(job);
    job.positions += kBlockChannels;
  }
}

// Transforms the squares of `tiles`. Called by all threads of a team.
template <class T>
void transform_squares(const SquareSource<T>& from,
                       const TileGrid& grid,
                       const Range& tiles,
                       const TransformedTiles<T>& to) {
  for_each_share(to.blocks, tiles.size(), [&](Index block, const Range& share) {
    const Range channels = block_channels(from.squares.cells.channels, block);
    const Range numbers{tiles.begin + share.begin, tiles.begin + share.end};
    grid.for_each_run(numbers, from.squares, [&](const SquareRun& run) {
      SquareTransform<T> job;
      job.positions = to.at(0, block, run.first - tiles.begin);
      job.position_step = to.position_stride();
      transform_run(from, channels, run, grid.side(), job);
    });
  });
}

// Where sums go: to the channels and cells of `region`, with a bias or none.
template <class T>
struct SumTarget {
  void (*transform)(const SumTransform<T>&) = nullptr;
  View<T> view;
  Region region;
  const T* bias = nullptr;  // of region.channels
  bool add = false;         // to what is there, or assign
};

template <class T>
void transform_run(const SumTarget<T>& to,
                   const Range& channels,
                   const SquareRun& run,
                   Index tile_side,
                   SumTransform<T> job) {
  job.inside = run.inside;
  alignas(kAlignment) std::array<T, static_cast<std::size_t>(kBlockChannels)> bias{};
  if (to.bias != nullptr) {
    std::copy_n(to.bias + channels.begin - to.region.channels.begin, channels.size(), bias.begin());
    job.bias = bias.data();
  }
  if (is_whole_block(channels, to.view, kBlockChannels)) {
    job.cells = line_start(to.view, channels, run.image, run.row, run.col);
    job.row_step = to.view.row_stride();
    job.tile_step = tile_side * kBlockChannels;
    job.tiles = run.tiles;
    job.add = to.add;
    to.transform(job);
    return;
  }
  alignas(kAlignment) SquareCopy<T> copy{};
  job.cells = copy.data();
  job.row_step = tile_side * kBlockChannels;
  job.tiles = 1;
  for (Index tile = 0; tile < run.tiles; ++tile) {
    to.transform(job);
    SquareRun square = run;
    square.col += tile * tile_side;
    for_each_copied(copy, to.view, channels, square, tile_side, [&](const T& sum, T& cell) {
      cell = to.add ? cell + sum : sum;
    });
    job.positions += kBlockChannels;
  }
}

// Transforms the sums of `tiles` back. Called by all threads of a team.
template <class T>
void transform_sums(const TransformedTiles<T>& sums,
                    const TileGrid& grid,
                    const Range& tiles,
                    const SumTarget<T>& to) {
  const TileSquares outputs{grid.side(), 0, to.region};
  for_each_share(sums.blocks, tiles.size(), [&](Index block, const Range& share) {
    const Range channels = block_channels(to.region.channels, block);
    const Range numbers{tiles.begin + share.begin, tiles.begin + share.end};
    grid.for_each_run(numbers, outputs, [&](const SquareRun& run) {
      SumTransform<T> job;
      job.positions = sums.at(0, block, run.first - tiles.begin);
      job.position_step = sums.position_stride();
      transform_run(to, channels, run, grid.side(), job);
    });
  });
}

}  // namespace tessera::engine
