// Gradients of a map, line by line: as they lie in memory, or, where a max-pool is fused with what
// made the map, from the gradients and the argmax of the pool.

#pragma once

#include <algorithm>

#include "engine/ops/loops/joined_rows.h"
#include "engine/ops/loops/lines.h"
#include "engine/ops/pool/pool.h"
#include "engine/ops/pool/pool_windows.h"

namespace tessera::engine {

// A run of channels in one row of an image.
struct ChannelsAt {
  Range run;
  Index image = 0;
  Index row = 0;
  Index channels = 0;
};

template <class T>
class GradientLines {
 public:
  // Lies in memory.
  explicit GradientLines(View<const T> gradient)
      : gradient_(gradient), argmax_{nullptr, gradient.region, gradient.block} {}

  // Comes from the gradients and the argmax of a pool, on site.region.
  GradientLines(const PoolSite& site, View<const T> gradient, View<const ArgmaxOffset> argmax)
      : gradient_(gradient), argmax_(argmax), site_(site), fused_(true) {}

  // Runs of channels that lie side by side here and in `other`, and how many channels of one a
  // kernel may touch.
  [[nodiscard]] std::vector<Range> runs(const Range& channels, const View<const T>& other) const {
    return channel_runs(channels, other, gradient_, argmax_);
  }
  [[nodiscard]] Index channels(const Range& run, const View<const T>& other) const {
    return channels_of_block(run, other, gradient_, argmax_);
  }

  // How many rows of both maps to take as one, and the gradients then.
  [[nodiscard]] Index rows_at_once(const Region& region, const View<const T>& other) const {
    return fused_ ? 1 : engine::rows_at_once(region, other, gradient_);
  }
  [[nodiscard]] GradientLines joined(Index rows) const {
    return GradientLines(engine::joined(gradient_, rows));
  }

  // Calls visit(col, cells, gradients, step) for pieces of a line that together are `cols`.
  template <class Visit>
  void for_each_piece(const ChannelsAt& at, const Range& cols, Visit visit) const {
    if (!fused_) {
      visit(cols.begin,
            cols.size(),
            line_start(gradient_, at.run, at.image, at.row, cols.begin),
            gradient_.block);
      return;
    }
    alignas(kAlignment) T made[kPieceCells * kMostChannels];
    for (Index begin = cols.begin; begin < cols.end; begin += kPieceCells) {
      const Range piece{begin, std::min(begin + kPieceCells, cols.end)};
      unpool(at, piece, {made, at.row, begin, 0, at.channels});
      visit(begin, piece.size(), static_cast<const T*>(made), at.channels);
    }
  }

  // The part of `cols` that lies in whole windows of a fused pool with a gradient; else none, after
  // the last.
  [[nodiscard]] Range whole_windows(Index row, const Range& cols) const {
    const Range none{cols.end, cols.end};
    const partitioner::WindowAxis axis = site_.pool.cols();
    if (!fused_ || !is_pooled(window_of(site_.pool.rows(), row))) {
      return none;
    }
    const Range outs =
        intersect({window_of(axis, cols.begin + axis.size - 1), window_of(axis, cols.end)},
                  site_.region.cols);
    return outs.empty() ? none
                        : Range{window_begin(axis, outs.begin), window_begin(axis, outs.end)};
  }

  // The gradients of columns that whole_windows() gave.
  [[nodiscard]] ArgmaxRow<T> windows(const ChannelsAt& at, const Range& cols) const {
    const Index size = site_.pool.size;
    return window_row(at, window_of(site_.pool.cols(), cols.begin), cols.size() / size, size, 0);
  }

  // Assigns cells `cols` of a line the gradients that they have won.
  void unpool(const ChannelsAt& at, const Range& cols, const CellRows<T>& to) const {
    const MaxPool& pool = site_.pool;
    const Index out_row = window_of(site_.pool.rows(), at.row);
    const bool row_pooled = is_pooled(out_row);
    for (Index col = cols.begin; col < cols.end;) {
      const Index out = window_of(pool.cols(), col);
      const Index offset = col - window_begin(pool.cols(), out);
      const Index whole = offset == 0 ? (cols.end - col) / pool.size : 0;
      const Index cells = whole > 0 ? pool.size : std::min(pool.size - offset, cols.end - col);
      const Range wanted = intersect({out, out + std::max<Index>(whole, 1)}, site_.region.cols);
      if (!row_pooled || wanted.begin != out || wanted.empty()) {
        for (Index cell = col; cell < col + cells; ++cell) {  // others' channels may follow
          std::fill_n(to.at(at.row, cell), at.channels, T{});
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

  [[nodiscard]] static Index window_of(const partitioner::WindowAxis& axis, Index cell) {
    return (cell + axis.padding) / axis.size;  // == stride
  }

  [[nodiscard]] bool is_pooled(Index out_row) const {
    return out_row >= site_.region.rows.begin && out_row < site_.region.rows.end;
  }

  // `cols` cells of each of some windows from `out` on, the first `offset` cells into its window.
  [[nodiscard]] ArgmaxRow<T> window_row(
      const ChannelsAt& at, Index out, Index windows, Index cols, Index offset) const {
    const Index out_row = window_of(site_.pool.rows(), at.row);
    ArgmaxRow<T> from = argmax_row(gradient_, argmax_, at.run, at.image, out_row, out);
    from.windows = windows;
    from.cols = cols;
    from.channels = at.channels;
    from.first = (at.row - window_begin(site_.pool.rows(), out_row)) * site_.pool.size + offset;
    return from;
  }

  View<const T> gradient_;
  View<const ArgmaxOffset> argmax_;
  PoolSite site_;
  bool fused_ = false;
};

// Assigns `to` on the region.
template <class T>
void copy_lines(const GradientLines<T>& gradients, const Region& region, View<T> to) {
  const View<const T> place = to;
  const auto runs = gradients.runs(region.channels, place);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const ChannelsAt at{run, n, row, gradients.channels(run, place)};
    gradients.unpool(
        at,
        region.cols,
        {line_start(to, run, n, row, region.cols.begin), row, region.cols.begin, 0, to.block});
  });
}

}  // namespace tessera::engine
