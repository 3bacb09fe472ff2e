// Gradients of a map, line by line: as they lie in memory, or, where a max-pool is joined with what
// made the map, out of the gradients and winners of the pool.

#pragma once

#include <algorithm>

#include "engine/ops/loops/lines.h"
#include "engine/ops/pool/pool.h"
#include "engine/ops/pool/pool_windows.h"

namespace tessera::engine {

// The lanes of a run of channels in one row of an image.
struct LanesAt {
  Range run;
  Index image = 0;
  Index row = 0;
  Index lanes = 0;
};

template <class T>
class GradientLines {
 public:
  // Lies in memory.
  explicit GradientLines(View<const T> gradient)
      : gradient_(gradient), winners_{nullptr, gradient.region, gradient.block} {}

  // Comes from the gradients and winners of a pool, on site.region.
  GradientLines(const PoolSite& site, View<const T> gradient, View<const Winner> winners)
      : gradient_(gradient), winners_(winners), site_(site), joined_(true) {}

  // Runs of channels that lie side by side here and in `other`, and the lanes of one.
  [[nodiscard]] std::vector<Range> runs(const Range& channels, const View<const T>& other) const {
    return channel_runs(channels, other, gradient_, winners_);
  }
  [[nodiscard]] Index lanes(const Range& run, const View<const T>& other) const {
    return whole_lanes(run, other, gradient_, winners_);
  }

  // Calls visit(col, cells, gradients, step) for pieces of a line that together are `cols`.
  template <class Visit>
  void for_each_piece(const LanesAt& at, const Range& cols, Visit visit) const {
    if (!joined_) {
      visit(cols.begin,
            cols.size(),
            line_start(gradient_, at.run, at.image, at.row, cols.begin),
            gradient_.block);
      return;
    }
    alignas(kAlignment) T made[kPieceCells * kMostLanes];
    for (Index begin = cols.begin; begin < cols.end; begin += kPieceCells) {
      const Range piece{begin, std::min(begin + kPieceCells, cols.end)};
      unpool(at, piece, {made, at.row, begin, 0, at.lanes});
      visit(begin, piece.size(), static_cast<const T*>(made), at.lanes);
    }
  }

  // Those of `cols` that lie in whole windows of a joined pool with a gradient; else none, after
  // the last.
  [[nodiscard]] Range whole_windows(Index row, const Range& cols) const {
    const Range none{cols.end, cols.end};
    if (!joined_ || !is_pooled(window_of(row))) {
      return none;
    }
    const Range outs = partitioner::intersect(
        {window_of(cols.begin + site_.pool.size - 1), window_of(cols.end)}, site_.region.cols);
    return outs.empty()
               ? none
               : Range{window_begin(site_.pool, outs.begin), window_begin(site_.pool, outs.end)};
  }

  // The gradients of columns that whole_windows() gave.
  [[nodiscard]] WinnerRow<T> windows(const LanesAt& at, const Range& cols) const {
    return window_row(at, window_of(cols.begin), cols.size() / site_.pool.size, site_.pool.size, 0);
  }

  // Assigns cells `cols` of a line the gradients that they have won.
  void unpool(const LanesAt& at, const Range& cols, const CellRows<T>& to) const {
    const MaxPool& pool = site_.pool;
    const Index out_row = window_of(at.row);
    const bool row_pooled = is_pooled(out_row);
    for (Index col = cols.begin; col < cols.end;) {
      const Index out = window_of(col);
      const Index offset = col - window_begin(pool, out);
      const Index whole = offset == 0 ? (cols.end - col) / pool.size : 0;
      const Index cells = whole > 0 ? pool.size : std::min(pool.size - offset, cols.end - col);
      const Range wanted =
          partitioner::intersect({out, out + std::max<Index>(whole, 1)}, site_.region.cols);
      if (!row_pooled || wanted.begin != out || wanted.empty()) {
        for (Index cell = col; cell < col + cells; ++cell) {  // other lanes may be others' channels
          std::fill_n(to.at(at.row, cell), at.lanes, T{});
        }
        col += cells;
        continue;
      }
      row_kernels<T>().unpool({window_row(at, out, wanted.size(), cells, offset),
                               to.at(at.row, col),
                               to.step,
                               pool.size * to.step});
      col += whole > 0 ? wanted.size() * pool.size : cells;
    }
  }

 private:
  static constexpr Index kPieceCells = 128;

  [[nodiscard]] Index window_of(Index cell) const {
    return (cell + site_.pool.padding / 2) / site_.pool.size;  // == stride
  }

  [[nodiscard]] bool is_pooled(Index out_row) const {
    return out_row >= site_.region.rows.begin && out_row < site_.region.rows.end;
  }

  // `cols` cells of each of some windows from `out` on, the first `offset` cells into its window.
  [[nodiscard]] WinnerRow<T> window_row(
      const LanesAt& at, Index out, Index windows, Index cols, Index offset) const {
    const Index out_row = window_of(at.row);
    WinnerRow<T> from = winner_row(gradient_, winners_, at.run, at.image, out_row, out);
    from.windows = windows;
    from.cols = cols;
    from.lanes = at.lanes;
    from.first = (at.row - window_begin(site_.pool, out_row)) * site_.pool.size + offset;
    return from;
  }

  View<const T> gradient_;
  View<const Winner> winners_;
  PoolSite site_;
  bool joined_ = false;
};

// Assigns `to` on the region.
template <class T>
void copy_lines(const GradientLines<T>& gradients, const Region& region, View<T> to) {
  const View<const T> place = to;
  const auto runs = gradients.runs(region.channels, place);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const LanesAt at{run, n, row, gradients.lanes(run, place)};
    gradients.unpool(
        at,
        region.cols,
        {line_start(to, run, n, row, region.cols.begin), row, region.cols.begin, 0, to.block});
  });
}

}  // namespace tessera::engine
