#include "engine/ops/rearrange/rearrange.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/ops/loops/lines.h"
#include "engine/ops/loops/threads.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kAllRows = -1;
constexpr Index kWholeBlock = 16;  // channels

Index round_up(Index value, Index every) {
  return (value + every - 1) / every * every;
}

// Cells side by side in two views, `channels` channels of each.
template <class Out, class In>
struct CellRows {
  Out* to = nullptr;
  Index to_step = 0;
  In* from = nullptr;
  Index from_step = 0;
  Index cells = 0;
  Index channels = 0;

  [[nodiscard]] bool dense() const { return to_step == channels && from_step == channels; }
};

// Calls visit(to, from) for the numbers of two rows that belong together: no number depends on
// another of its row.
template <class Out, class In, class Visit>
inline void for_each_number(const CellRows<Out, In>& rows, Visit visit) {
  if (rows.dense()) {
#pragma omp simd
    for (Index i = 0; i < rows.cells * rows.channels; ++i) {
      visit(rows.to[i], rows.from[i]);
    }
    return;
  }
  for (Index cell = 0; cell < rows.cells; ++cell) {
    Out* to = rows.to + cell * rows.to_step;
    In* from = rows.from + cell * rows.from_step;
    for_each_channel(rows.channels, [&](Index l) { visit(to[l], from[l]); });
  }
}

// By the C library where there is much to copy: it can write without reading first.
template <class T>
inline void copy_row(T* to, const T* from, Index count) {
  if (count == kWholeBlock) {
    std::memcpy(to, from, kWholeBlock * sizeof(T));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
}

template <class T>
inline void copy_rows(const CellRows<T, const T>& rows) {
  if (rows.dense()) {
    copy_row(rows.to, rows.from, rows.cells * rows.channels);
    return;
  }
  for (Index cell = 0; cell < rows.cells; ++cell) {
    copy_row(rows.to + cell * rows.to_step, rows.from + cell * rows.from_step, rows.channels);
  }
}

// A view's run of channels, numbered as the output's.
template <class In>
View<In> shifted(View<In> in, Index channel_shift) {
  in.region.channels.begin -= channel_shift;
  in.region.channels.end -= channel_shift;
  return in;
}

// Calls visit(rows) with the cells that belong together; Out and In are const T or T. With a
// phase: only on rows that are `phase` more than a multiple of map.repeat.
template <class Out, class In, class Visit>
void for_each_pair(const CellMap& map,
                   const View<Out>& out,
                   const Region& region,
                   const View<In>& in,
                   Visit visit,
                   Index phase = kAllRows) {
  const View<In> from = shifted(in, map.channel_shift);
  const bool same_places = map.sample == 1 && map.repeat == 1 && map.every == 1;
  for_each_line(
      region, channel_runs(region.channels, out, from), [&](const Range& run, Index n, Index row) {
        if (row % map.every != 0 || (phase != kAllRows && row % map.repeat != phase)) {
          return;
        }
        const Index channels = channels_of_block(run, out, from);
        const Index source = row * map.sample / map.repeat;
        if (same_places) {
          visit(CellRows<Out, In>{line_start(out, run, n, row, region.cols.begin),
                                  out.block,
                                  line_start(from, run, n, source, region.cols.begin),
                                  from.block,
                                  region.cols.size(),
                                  channels});
          return;
        }
        for (Index col = round_up(region.cols.begin, map.every); col < region.cols.end;
             col += map.every) {
          const Index source_col = col * map.sample / map.repeat;
          visit(CellRows<Out, In>{line_start(out, run, n, row, col),
                                  out.block,
                                  line_start(from, run, n, source, source_col),
                                  from.block,
                                  1,
                                  channels});
        }
      });
}

// Whether each cell only is repeated, as upsampling does.
bool only_repeats(const CellMap& map) {
  return map.repeat > 1 && map.sample == 1 && map.every == 1;
}

// Calls visit(first, count) for the cells of [outs) that repeat the same cell, cell by cell.
template <class Visit>
inline void for_each_repeated(const Range& outs, Index repeat, Visit visit) {
  Index source = outs.begin / repeat;
  for (Index out = outs.begin; out < outs.end; ++source) {
    const Index end = std::min((source + 1) * repeat, outs.end);
    visit(source, Range{out, end});
    out = end;
  }
}

template <class T>
void repeat_cells(const CellMap& map, const View<const T>& in, const Region& region, View<T> out) {
  const View<const T> from = shifted(in, map.channel_shift);
  for_each_line(
      region, channel_runs(region.channels, out, from), [&](const Range& run, Index n, Index row) {
        const Index channels = channels_of_block(run, out, from);
        const T* x = line_start(from, run, n, row / map.repeat, from.region.cols.begin);
        T* y = line_start(out, run, n, row, region.cols.begin);
        for_each_repeated(region.cols, map.repeat, [&](Index source, const Range& outs) {
          const T* cell = x + (source - from.region.cols.begin) * from.block;
          for (Index col = outs.begin; col < outs.end; ++col, y += out.block) {
            copy_row(y, cell, channels);
          }
        });
      });
}

// Each cell of the gradient takes what it adds up row by row of the cells that repeat it.
template <class T>
void repeat_cells_backward(const CellMap& map,
                           T factor,
                           const View<const T>& out_gradient,
                           const Region& region,
                           const View<T>& in_gradient,
                           bool assign) {
  const View<T> to = shifted(in_gradient, map.channel_shift);
  Region sources = region;
  sources.rows = {region.rows.begin / map.repeat, (region.rows.end - 1) / map.repeat + 1};
  for_each_line(
      sources,
      channel_runs(region.channels, out_gradient, to),
      [&](const Range& run, Index n, Index source_row) {
        const Index channels = channels_of_block(run, out_gradient, to);
        const Range rows =
            intersect({source_row * map.repeat, (source_row + 1) * map.repeat}, region.rows);
        const T* gradients = line_start(out_gradient, run, n, rows.begin, region.cols.begin);
        const Index step = out_gradient.block;
        T* x = line_start(to, run, n, source_row, region.cols.begin / map.repeat);
        for_each_repeated(region.cols, map.repeat, [&](Index, const Range& cols) {
          std::array<T, kWholeBlock> sums{};
          if (!assign) {
            for_each_channel(channels, [&](Index l) { sums[static_cast<std::size_t>(l)] = x[l]; });
          }
          for (Index row = 0; row < rows.size(); ++row) {
            const T* g = gradients + row * out_gradient.row_stride();
            for (Index i = 0; i < cols.size() * step; i += step) {
              for_each_channel(channels, [&](Index l) {
                sums[static_cast<std::size_t>(l)] += factor * g[i + l];
              });
            }
          }
          gradients += cols.size() * step;
          copy_row(x, sums.data(), channels);
          x += to.block;
        });
      });
}

}  // namespace

template <class T>
void copy_cells(
    const CellMap& map, T factor, bool add, View<const T> in, const Region& region, View<T> out) {
  using Rows = CellRows<T, const T>;
  if (region.empty()) {
    return;
  }
  if (add) {
    for_each_pair(map, out, region, in, [factor](const Rows& rows) {
      for_each_number(rows, [factor](T& to, const T& from) { to += factor * from; });
    });
  } else if (factor != 1) {
    for_each_pair(map, out, region, in, [factor](const Rows& rows) {
      for_each_number(rows, [factor](T& to, const T& from) { to = factor * from; });
    });
  } else if (only_repeats(map)) {
    repeat_cells(map, in, region, out);
  } else {
    for_each_pair(map, out, region, in, [](const Rows& rows) { copy_rows(rows); });
  }
}

template <class T>
void add_cells(
    T factor, View<const T> first, View<const T> second, const Region& region, View<T> out) {
  if (region.empty()) {
    return;
  }
  for_each_line(
      region,
      channel_runs(region.channels, out, first, second),
      [&](const Range& run, Index n, Index row) {
        const Index channels = channels_of_block(run, out, first, second);
        T* y = line_start(out, run, n, row, region.cols.begin);
        const T* a = line_start(first, run, n, row, region.cols.begin);
        const T* b = line_start(second, run, n, row, region.cols.begin);
        if (out.block == channels && first.block == channels && second.block == channels) {
#pragma omp simd
          for (Index i = 0; i < region.cols.size() * channels; ++i) {
            y[i] = a[i] + factor * b[i];
          }
          return;
        }
        for (Index col = 0; col < region.cols.size(); ++col) {
          for_each_channel(channels, [&](Index l) { y[l] = a[l] + factor * b[l]; });
          y += out.block;
          a += first.block;
          b += second.block;
        }
      });
}

template <class T>
void copy_cells_backward(const CellMap& map,
                         T factor,
                         View<const T> out_gradient,
                         const Region& region,
                         View<T> in_gradient,
                         bool assign) {
  using Rows = CellRows<const T, T>;
  if (region.empty()) {
    return;
  }
  const auto add = [factor](const Rows& rows) {
    for_each_number(rows, [factor](const T& from, T& to) { to += factor * from; });
  };
  if (only_repeats(map)) {
    repeat_cells_backward(map, factor, out_gradient, region, in_gradient, assign);
    return;
  }
  expects(!assign || (map.sample == 1 && map.repeat == 1 && map.every == 1),
          "cells that are assigned once");
  if (assign && factor == 1) {
    for_each_pair(map, out_gradient, region, in_gradient, [](const Rows& rows) {
      copy_rows(CellRows<T, const T>{
          rows.from, rows.from_step, rows.to, rows.to_step, rows.cells, rows.channels});
    });
    return;
  }
  if (assign) {
    for_each_pair(map, out_gradient, region, in_gradient, [factor](const Rows& rows) {
      for_each_number(rows, [factor](const T& from, T& to) { to = factor * from; });
    });
    return;
  }
  if (map.repeat == 1) {
    for_each_pair(map, out_gradient, region, in_gradient, add);
    return;
  }
  // Rows that add to the same row of the input come one after the other: threads must not meet
  // there.
  for (Index phase = 0; phase < map.repeat; ++phase) {
    for_each_pair(map, out_gradient, region, in_gradient, add, phase);
  }
}

template <class T>
void scale_cells(T factor, Index every, const Region& region, View<T> out) {
  const CellMap same{0, 1, 1, every};
  for_each_pair(same, out, region, out, [factor](const CellRows<T, T>& rows) {
    for_each_number(rows, [factor](T& cell, T&) { cell *= factor; });
  });
}

template void copy_cells<float>(
    const CellMap&, float, bool, View<const float>, const Region&, View<float>);
template void copy_cells<double>(
    const CellMap&, double, bool, View<const double>, const Region&, View<double>);
template void add_cells<float>(
    float, View<const float>, View<const float>, const Region&, View<float>);
template void copy_cells_backward<float>(
    const CellMap&, float, View<const float>, const Region&, View<float>, bool);
template void add_cells<double>(
    double, View<const double>, View<const double>, const Region&, View<double>);
template void copy_cells_backward<double>(
    const CellMap&, double, View<const double>, const Region&, View<double>, bool);
template void scale_cells<float>(float, Index, const Region&, View<float>);
template void scale_cells<double>(double, Index, const Region&, View<double>);

}  // namespace tessera::engine
