#include "engine/ops/rearrange/rearrange.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "engine/ops/rearrange/cell_rows.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kWholeBlock = 16;  // channels

Index round_up(Index value, Index every) {
  return (value + every - 1) / every * every;
}

// A view's run of channels, numbered as the output's.
template <class In>
View<In> shifted(View<In> in, Index channel_shift) {
  in.region.channels.begin -= channel_shift;
  in.region.channels.end -= channel_shift;
  return in;
}

// Calls visit(rows) with the cells that belong together; Out and In are const T or T.
template <class Out, class In, class Visit>
void for_each_pair(const CellMap& map,
                   const View<Out>& out,
                   const Region& region,
                   const View<In>& in,
                   Visit visit) {
  const View<In> from = shifted(in, map.channel_shift);
  const Index step = std::lcm(map.every, map.repeat);
  const Index first = round_up(region.cols.begin, map.every);
  const Index end = std::min(first + step, region.cols.end);
  const auto visit_run = [&](const Range& run, Index n, const Range& rows) {
    const Index source_row = rows.begin * map.sample / map.repeat;
    const Index channels = channels_of_block(run, out, from);
    for (Index col = first; col < end; col += map.every) {
      const Index source_col = col * map.sample / map.repeat;
      const Index cols = region.cols.end - col + (rows.size() - 1) * region.cols.size();
      visit(CellRows<Out, In>{line_start(out, run, n, rows.begin, col),
                              step * out.block,
                              line_start(from, run, n, source_row, source_col),
                              step * map.sample / map.repeat * from.block,
                              (cols + step - 1) / step,
                              channels});
    }
  };
  // Runs that share a block of the output come one after the other, while its cells are at hand.
  const auto visit_block = [&](const Range& block, Index n, const Range& rows) {
    for_each_channel_run(
        block, [&](const Range& run) { visit_run(run, n, rows); }, out, from);
  };
  const std::vector<Range> blocks = channel_runs(region.channels, out);
  if (map.sample == 1 && step == 1) {
    for_each_rows(region, blocks, visit_block, out, from);
    return;
  }
  for_each_line(region, blocks, [&](const Range& block, Index n, Index row) {
    if (row % map.every == 0) {
      visit_block(block, n, Range{row, row + 1});
    }
  });
}

// Whether each cell only is repeated, as upsampling does.
bool only_repeats(const CellMap& map) {
  return map.repeat > 1 && map.sample == 1 && map.every == 1;
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
        for (Index col = region.cols.begin; col < region.cols.end;) {
          const Index end = std::min((col / map.repeat + 1) * map.repeat, region.cols.end);
          std::array<T, kWholeBlock> sums{};
          if (!assign) {
            for_each_channel(channels, [&](Index l) { sums[static_cast<std::size_t>(l)] = x[l]; });
          }
          for (Index row = 0; row < rows.size(); ++row) {
            const T* g = gradients + row * out_gradient.row_stride();
            for (Index i = 0; i < (end - col) * step; i += step) {
              for_each_channel(channels, [&](Index l) {
                sums[static_cast<std::size_t>(l)] += factor * g[i + l];
              });
            }
          }
          gradients += (end - col) * step;
          for_each_channel(channels, [&](Index l) { x[l] = sums[static_cast<std::size_t>(l)]; });
          x += to.block;
          col = end;
        }
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
  } else {
    for_each_pair(map, out, region, in, [](const Rows& rows) { copy_rows(rows); });
  }
}

template <class T>
void add_cells(
    T factor, View<const T> first, View<const T> second, const Region& region, View<T> out) {
  for_each_rows(
      region,
      channel_runs(region.channels, out, first, second),
      [&](const Range& run, Index n, const Range& rows) {
        const Index channels = channels_of_block(run, out, first, second);
        const Index cells = rows.size() * region.cols.size();
        T* y = line_start(out, run, n, rows.begin, region.cols.begin);
        const T* a = line_start(first, run, n, rows.begin, region.cols.begin);
        const T* b = line_start(second, run, n, rows.begin, region.cols.begin);
        if (out.block == channels && first.block == channels && second.block == channels) {
#pragma omp simd
          for (Index i = 0; i < cells * channels; ++i) {
            y[i] = a[i] + factor * b[i];
          }
          return;
        }
        for (Index cell = 0; cell < cells; ++cell) {
          for_each_channel(channels, [&](Index l) { y[l] = a[l] + factor * b[l]; });
          y += out.block;
          a += first.block;
          b += second.block;
        }
      },
      out,
      first,
      second);
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
  if (only_repeats(map)) {
    repeat_cells_backward(map, factor, out_gradient, region, in_gradient, assign);
    return;
  }
  expects(map.every % map.repeat == 0, "cells that no other row or column adds to");
  expects(!assign || (map.sample == 1 && map.every == 1), "cells that are assigned once");
  if (assign && factor == 1) {
    for_each_pair(map, out_gradient, region, in_gradient, [](const Rows& rows) {
      copy_rows(rows.reversed());
    });
  } else if (assign) {
    for_each_pair(map, out_gradient, region, in_gradient, [factor](const Rows& rows) {
      for_each_number(rows, [factor](const T& from, T& to) { to = factor * from; });
    });
  } else {
    for_each_pair(map, out_gradient, region, in_gradient, [factor](const Rows& rows) {
      for_each_number(rows, [factor](const T& from, T& to) { to += factor * from; });
    });
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
