// Max-pool's windows, line by line, from cells that lie anywhere: in a map, or in a few lines that
// are being made. Only the pool and what is fused with it use this.

#pragma once

#include <algorithm>

#include "engine/ops/loops/lines.h"
#include "engine/ops/pool/pool.h"

namespace tessera::engine {

using partitioner::MaxPool;
using partitioner::WindowAxis;

// The first cell of window `out`, and all of its cells that lie in the map, in one dimension.
[[nodiscard]] inline Index window_begin(const WindowAxis& axis, Index out) {
  return out * axis.stride - axis.padding;
}
[[nodiscard]] inline Range window_in(const WindowAxis& axis, Index out, const Range& map) {
  const Index begin = window_begin(axis, out);
  return intersect({begin, begin + axis.size}, map);
}

// Calls visit(first, count, cells) for windows [outs) in one dimension: runs of whole windows, and
// each one that the map's border clips, `cells` being those of the first that lie in the map.
template <class Visit>
void for_each_window_run(const WindowAxis& axis, const Range& outs, const Range& map, Visit visit) {
  for (Index out = outs.begin; out < outs.end;) {
    const Range cells = window_in(axis, out, map);
    Index count = 1;
    if (cells.size() == axis.size) {
      const Index last = (map.end - axis.size + axis.padding) / axis.stride;  // whole window
      count = std::clamp<Index>(last + 1 - out, 1, outs.end - out);
    }
    visit(out, count, cells);
    out += count;
  }
}

// Some rows of cells that begin with cell (row, col).
template <class T>
struct CellRows {
  T* first = nullptr;
  Index row = 0;
  Index col = 0;
  Index row_stride = 0;
  Index step = 0;

  [[nodiscard]] T* at(Index r, Index c) const {
    return first + (r - row) * row_stride + (c - col) * step;
  }
};

// Where the values and argmax offsets of windows go, from the first window on.
template <class T>
struct PooledLine {
  T* values = nullptr;
  Index values_step = 0;
  ArgmaxOffset* argmax = nullptr;
  Index argmax_step = 0;
};

// The view of the argmax offsets, or one of nothing that is laid out like the values.
template <class T>
[[nodiscard]] View<ArgmaxOffset> argmax_cells(const Pooled<T>& out) {
  return out.argmax.data == nullptr
             ? View<ArgmaxOffset>{nullptr, out.values.region, out.values.block}
             : out.argmax;
}

template <class T>
[[nodiscard]] PooledLine<T> pooled_line(
    const Pooled<T>& out, const Range& run, Index n, Index row, Index col) {
  const bool has_argmax = out.argmax.data != nullptr;
  return {line_start(out.values, run, n, row, col),
          out.values.block,
          has_argmax ? line_start(out.argmax, run, n, row, col) : nullptr,
          out.argmax.block};
}

// The gradients and argmax offsets of windows from (row, col) on; which cells of them is left to
// say.
template <class T>
[[nodiscard]] ArgmaxRow<T> argmax_row(const View<const T>& gradient,
                                      const View<const ArgmaxOffset>& argmax,
                                      const Range& run,
                                      Index n,
                                      Index row,
                                      Index col) {
  ArgmaxRow<T> from;
  from.gradient = line_start(gradient, run, n, row, col);
  from.gradient_step = gradient.block;
  from.argmax = line_start(argmax, run, n, row, col);
  from.argmax_step = argmax.block;
  return from;
}

// Windows side by side: those of output row `row`, columns `cols`.
struct WindowLine {
  Index row = 0;
  Range cols;
};

template <class T>
void pool_line(const PoolSite& site,
               const CellRows<const T>& in,
               const WindowLine& windows,
               Index channels,
               const PooledLine<T>& to) {
  const MaxPool& pool = site.pool;
  const WindowAxis across = pool.cols();
  const Range rows = window_in(pool.rows(), windows.row, site.map.rows);
  const Index first_row = (rows.begin - window_begin(pool.rows(), windows.row)) * pool.size;
  for_each_window_run(
      across, windows.cols, site.map.cols, [&](Index out, Index count, const Range& cols) {
        const Index at = out - windows.cols.begin;
        row_kernels<T>().pool(
            {.x = in.at(rows.begin, cols.begin),
             .x_row = in.row_stride,
             .x_step = in.step,
             .x_window = across.stride * in.step,
             .rows = rows.size(),
             .cols = cols.size(),
             .windows = count,
             .channels = channels,
             .y = to.values + at * to.values_step,
             .y_step = to.values_step,
             .argmax = to.argmax == nullptr ? nullptr : to.argmax + at * to.argmax_step,
             .argmax_step = to.argmax_step,
             .first = first_row + cols.begin - window_begin(across, out),
             .size = pool.size});
      });
}

}  // namespace tessera::engine
