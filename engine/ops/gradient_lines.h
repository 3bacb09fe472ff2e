// Gradients of a map, line by line: as they lie in memory, or, where a max-pool is joined with what
// made the map, out of the gradients and winners of the pool.

#pragma once

#include <algorithm>

#include "engine/ops/lines.h"
#include "engine/ops/pool.h"
#include "engine/ops/pool_windows.h"

namespace engine {

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

  // Those of `cols` that lie in whole windows of a joined pool with a gradient.
  [[nodiscard]] Range whole_windows(Index row, const Range& cols) const {
    const Index out_row = joined_ ? window_of(row) : 0;
    if (!joined_ || !partitioner::contains(site_.region.rows, {out_row, out_row + 1})) {
      return {};
    }
    const Range outs = partitioner::intersect(
        {window_of(cols.begin + site_.pool.size - 1), window_of(cols.end)}, site_.region.cols);
    return outs.empty()
               ? Range{}
               : Range{window_begin(site_.pool, outs.begin), window_begin(site_.pool, outs.end)};
  }

  // What whole_windows() gave, of a line whose cell `cols.begin` is at `x`.
  [[nodiscard]] PooledGradientRow<T> windows(const LanesAt& at,
                                             const Range& cols,
                                             const T* x,
                                             Index x_step) const {
    const Index size = site_.pool.size;
    const Index out_row = window_of(at.row);
    const Index out = window_of(cols.begin);
    return {.x = x,
            .x_step = x_step,
            .gradient = line_start(gradient_, at.run, at.image, out_row, out),
            .gradient_step = gradient_.block,
            .winners = line_start(winners_, at.run, at.image, out_row, out),
            .winners_step = winners_.block,
            .windows = cols.size() / size,
            .size = size,
            .first = (at.row - window_begin(site_.pool, out_row)) * size,
            .lanes = at.lanes};
  }

  // Assigns cells `cols` of a line the gradients that they have won.
  void unpool(const LanesAt& at, const Range& cols, const CellRows<T>& to) const {
    const MaxPool& pool = site_.pool;
    const Index out_row = window_of(at.row);
    const Index row_number = (at.row - window_begin(pool, out_row)) * pool.size;
    const bool row_pooled = out_row >= site_.region.rows.begin && out_row < site_.region.rows.end;
    for (Index col = cols.begin; col < cols.end;) {
      const Index out = window_of(col);
      const Index offset = col - window_begin(pool, out);
      const Index whole = offset == 0 ? (cols.end - col) / pool.size : 0;
      const Index cells = whole > 0 ? pool.size : std::min(pool.size - offset, cols.end - col);
      const Range wanted =
          partitioner::intersect({out, out + std::max<Index>(whole, 1)}, site_.region.cols);
      if (!row_pooled || wanted.begin != out || wanted.empty()) {
        std::fill_n(to.at(at.row, col), cells * to.step, T{});
        col += cells;
        continue;
      }
      row_kernels<T>().unpool({.gradient = line_start(gradient_, at.run, at.image, out_row, out),
                               .gradient_step = gradient_.block,
                               .winners = line_start(winners_, at.run, at.image, out_row, out),
                               .winners_step = winners_.block,
                               .windows = wanted.size(),
                               .cols = cells,
                               .lanes = at.lanes,
                               .first = row_number + offset,
                               .x = to.at(at.row, col),
                               .x_step = to.step,
                               .x_window = pool.size * to.step});
      col += whole > 0 ? wanted.size() * pool.size : cells;
    }
  }

 private:
  static constexpr Index kPieceCells = 128;

  [[nodiscard]] Index window_of(Index cell) const {
    return (cell + site_.pool.padding / 2) / site_.pool.size;  // == stride
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

}  // namespace engine
