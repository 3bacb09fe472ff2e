// The tiles of Winograd's convolution: squares of side x side outputs on a grid in global
// coordinates, and what of the squares around them lies inside a region. Only the kernel's own
// files include this.

#pragma once

#include "engine/ops/loops/threads.h"
#include "engine/ops/simd/block_kernels.h"

namespace tessera::engine {

inline constexpr Index kFilterSide = 3;

inline constexpr Index kLargestSide = 4;
inline constexpr Index kLargestWindow = kLargestSide + kFilterSide - 1;

[[nodiscard]] inline Index window_side(Index side) {
  return side + kFilterSide - 1;
}

[[nodiscard]] inline Index positions_of(Index side) {
  return window_side(side) * window_side(side);
}

[[nodiscard]] inline Index blocks_of(Index channels) {
  return (channels + kBlockChannels - 1) / kBlockChannels;
}

// A square of cells for each tile of a grid.
struct TileSquares {
  Index side = 0;
  Index offset = 0;  // from a tile's first cell to the square's
  Region cells;      // that there are
};

// Squares of neighbouring tiles of one row, of which the same cells are there.
struct SquareRun {
  Index first = 0;  // number of the first tile
  Index tiles = 0;
  Index image = 0;
  Index row = 0;  // of the first square's first cell
  Index col = 0;
  TileCells inside;
};

// The tiles that cover a region, numbered by image, row and column.
class TileGrid {
 public:
  TileGrid(Index side, const Region& region);

  [[nodiscard]] Index side() const { return side_; }
  [[nodiscard]] Index count() const { return images_.size() * rows_.size() * cols_.size(); }

  // Rows of tiles are numbered by image, then row: those whose last tile is one of `tiles`, and
  // those whose first one is.
  [[nodiscard]] Range rows_ended_in(const Range& tiles) const {
    return {tiles.begin / cols_.size(), tiles.end / cols_.size()};
  }
  [[nodiscard]] Range rows_begun_in(const Range& tiles) const {
    const Index cols = cols_.size();
    return {(tiles.begin + cols - 1) / cols, (tiles.end + cols - 1) / cols};
  }

  // The lines of `region` in a row of tiles.
  struct Lines {
    Index image = 0;
    Range rows;
  };
  [[nodiscard]] Lines lines_of(Index row_number, const Region& region) const;

  // Calls visit(SquareRun) for the squares of `tiles`, in order.
  template <class Visit>
  void for_each_run(const Range& tiles, const TileSquares& squares, Visit visit) const {
    for (Index first = tiles.begin; first < tiles.end;) {
      const SquareRun run = run_from(first, tiles.end, squares);
      visit(run);
      first += run.tiles;
    }
  }

 private:
  // The longest run from tile `first` on that ends before `end`.
  [[nodiscard]] SquareRun run_from(Index first, Index end, const TileSquares& squares) const;

  Index side_;
  Range images_;
  Range rows_;  // in tiles
  Range cols_;
};

// Positions of transformed tiles, (position, channel block, tile, kBlockChannels). Positions are a
// cache line further apart than they need be: else all of a tile would compete for the same few
// lines.
template <class T>
struct TransformedTiles {
  T* data = nullptr;
  Index blocks = 0;
  Index tiles = 0;

  [[nodiscard]] Index block_stride() const { return tiles * kBlockChannels; }
  [[nodiscard]] Index position_stride() const { return blocks * block_stride() + kBlockChannels; }
  [[nodiscard]] T* at(Index position, Index block, Index tile) const {
    return data + position * position_stride() + block * block_stride() + tile * kBlockChannels;
  }
};

// Transformed filters or their gradients, (position, block of outputs, input channel,
// kBlockChannels), positions apart likewise.
template <class T>
struct TransformedFilters {
  T* data = nullptr;
  Index blocks = 0;
  Index channels = 0;

  [[nodiscard]] Index block_stride() const { return channels * kBlockChannels; }
  [[nodiscard]] Index position_stride() const { return blocks * block_stride() + kBlockChannels; }
  [[nodiscard]] T* at(Index position, Index block, Index channel) const {
    return data + position * position_stride() + block * block_stride() + channel * kBlockChannels;
  }
};

// Calls visit(block, Range) for `items` items of each of `blocks` blocks, shared out evenly to the
// threads of a team, all of which call this.
template <class Visit>
void for_each_share(Index blocks, Index items, Visit visit) {
  const Index shares = omp_get_num_threads();
#pragma omp for schedule(static) nowait
  for (Index share = 0; share < shares; ++share) {
    const Index end = blocks * items * (share + 1) / shares;
    for (Index begin = blocks * items * share / shares; begin < end;) {
      const Index block = begin / items;
      const Index next = end < (block + 1) * items ? end : (block + 1) * items;
      visit(block, Range{begin - block * items, next - block * items});
      begin = next;
    }
  }
  wait_for_team();
}

}  // namespace tessera::engine
