#include "engine/ops/rearrange/rearrange.h"

#include "engine/ops/loops/lines.h"
#include "engine/ops/loops/threads.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;
using partitioner::Reorg;

constexpr Index kAllRows = -1;

Index round_up(Index value, Index every) {
  return (value + every - 1) / every * every;
}

// Runs of output channels that lie side by side in both views.
template <class Out, class In>
std::vector<Range> paired_runs(const CellMap& map,
                               const View<Out>& out,
                               const Range& channels,
                               View<In> in) {
  in.region.channels.begin -= map.channel_shift;  // numbered as the output's
  in.region.channels.end -= map.channel_shift;
  return channel_runs(channels, out, in);
}

// Calls visit(out, in) with the cells that belong together; Out and In are const T or T. With a
// phase: only on rows that are `phase` more than a multiple of map.repeat.
template <class Out, class In, class Visit>
void for_each_pair(const CellMap& map,
                   View<Out> out,
                   const Region& region,
                   View<In> in,
                   Visit visit,
                   Index phase = kAllRows) {
  const Index shift = map.channel_shift;
  const bool same_places = map.sample == 1 && map.repeat == 1 && map.every == 1;
  for_each_line(region,
                paired_runs(map, out, region.channels, in),
                [&](const Range& run, Index n, Index row) {
                  if (row % map.every != 0 || (phase != kAllRows && row % map.repeat != phase)) {
                    return;
                  }
                  Out* to = line_start(out, run, n, row, out.region.cols.begin);
                  In* from = line_start(in,
                                        {run.begin + shift, run.end + shift},
                                        n,
                                        row * map.sample / map.repeat,
                                        in.region.cols.begin);
                  if (same_places && run.size() == out.block && run.size() == in.block) {
                    to += (region.cols.begin - out.region.cols.begin) * out.block;
                    from += (region.cols.begin - in.region.cols.begin) * in.block;
                    for (Index i = 0; i < region.cols.size() * run.size(); ++i) {
                      visit(to[i], from[i]);
                    }
                    return;
                  }
                  for (Index col = round_up(region.cols.begin, map.every); col < region.cols.end;
                       col += map.every) {
                    Out* to_cell = to + (col - out.region.cols.begin) * out.block;
                    In* from_cell =
                        from + (col * map.sample / map.repeat - in.region.cols.begin) * in.block;
                    for_each_channel(run.size(), [&](Index l) { visit(to_cell[l], from_cell[l]); });
                  }
                });
}

}  // namespace

template <class T>
void copy_cells(
    const CellMap& map, T factor, bool add, View<const T> in, const Region& region, View<T> out) {
  if (add) {
    for_each_pair(map, out, region, in, [factor](T& to, const T& from) { to += factor * from; });
  } else {
    for_each_pair(map, out, region, in, [factor](T& to, const T& from) { to = factor * from; });
  }
}

template <class T>
void copy_cells_backward(const CellMap& map,
                         T factor,
                         View<const T> out_gradient,
                         const Region& region,
                         View<T> in_gradient) {
  const auto add = [factor](const T& from, T& to) { to += factor * from; };
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
  for_each_pair(same, out, region, out, [factor](T& cell, T&) { cell *= factor; });
}

namespace {

// For each output channel of the region: the window's cell and the input channel that it takes.
template <class Out, class In, class Visit>
void for_each_depth(
    Index stride, Index channels, View<Out> out, const Region& region, View<In> in, Visit visit) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.images, region.channels, [&](Index n, Index c) {
    const Index place = c / channels;
    const Index dy = place / stride;
    const Index dx = place % stride;
    for (Index row = region.rows.begin; row < region.rows.end; ++row) {
      for (Index col = region.cols.begin; col < region.cols.end; ++col) {
        visit(out.at(n, c, row, col), in.at(n, c % channels, row * stride + dy, col * stride + dx));
      }
    }
  });
}

template <class Out, class In, class Visit>
void for_each_reorg(const Reorg& reorg,
                    const MapShape& in_shape,
                    const MapShape& out_shape,
                    View<Out> out,
                    const Region& region,
                    View<In> in,
                    Visit visit) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.images, [&](Index n) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          const Index flat = (c * out_shape.rows + row) * out_shape.cols + col;
          const Index source = reorg_source(reorg, in_shape, flat);
          const Index cells = in_shape.rows * in_shape.cols;
          visit(out.at(n, c, row, col),
                in.at(n, source / cells, source % cells / in_shape.cols, source % in_shape.cols));
        }
      }
    }
  });
}

}  // namespace

template <class T>
void space_to_depth_forward(
    Index stride, Index channels, View<const T> in, const Region& region, View<T> out) {
  for_each_depth(stride, channels, out, region, in, [](T& to, const T& from) { to = from; });
}

template <class T>
void space_to_depth_backward(Index stride,
                             Index channels,
                             View<const T> out_gradient,
                             const Region& region,
                             View<T> in_gradient) {
  for_each_depth(stride, channels, out_gradient, region, in_gradient, [](const T& from, T& to) {
    to += from;
  });
}

// Darknet splits the C channels of its (C, H, W) view of memory into stride^2 runs of C / stride^2
// and spreads them over a map of C / stride^2 channels, H * stride rows and W * stride columns;
// [reorg] without `reverse` gathers instead.
Index reorg_source(const Reorg& reorg, const MapShape& in_shape, Index out) {
  const Index s = reorg.stride;
  const Index rows = in_shape.rows;
  const Index cols = in_shape.cols;
  const Index runs = in_shape.channels / (s * s);
  const auto spread = [&](Index flat) {  // from (C, H, W) to (C / s^2, H * s, W * s)
    const Index col = flat % cols;
    const Index row = flat / cols % rows;
    const Index channel = flat / (cols * rows);
    const Index offset = channel / runs;
    const Index wide_col = col * s + offset % s;
    const Index wide_row = row * s + offset / s;
    return wide_col + cols * s * (wide_row + rows * s * (channel % runs));
  };
  if (!reorg.reverse) {
    return spread(out);
  }
  // The opposite direction: the flat index whose spread is `out`.
  const Index wide_col = out % (cols * s);
  const Index wide_row = out / (cols * s) % (rows * s);
  const Index channel = out / (cols * s * rows * s);
  const Index offset = wide_row % s * s + wide_col % s;
  return wide_col / s + cols * (wide_row / s + rows * (offset * runs + channel));
}

template <class T>
void reorg_forward(const Reorg& reorg,
                   const MapShape& in_shape,
                   View<const T> in,
                   const MapShape& out_shape,
                   const Region& region,
                   View<T> out) {
  for_each_reorg(
      reorg, in_shape, out_shape, out, region, in, [](T& to, const T& from) { to = from; });
}

template <class T>
void reorg_backward(const Reorg& reorg,
                    const MapShape& in_shape,
                    View<const T> out_gradient,
                    const MapShape& out_shape,
                    const Region& region,
                    View<T> in_gradient) {
  for_each_reorg(
      reorg, in_shape, out_shape, out_gradient, region, in_gradient, [](const T& from, T& to) {
        to += from;
      });
}

template void copy_cells<float>(
    const CellMap&, float, bool, View<const float>, const Region&, View<float>);
template void copy_cells<double>(
    const CellMap&, double, bool, View<const double>, const Region&, View<double>);
template void copy_cells_backward<float>(
    const CellMap&, float, View<const float>, const Region&, View<float>);
template void copy_cells_backward<double>(
    const CellMap&, double, View<const double>, const Region&, View<double>);
template void scale_cells<float>(float, Index, const Region&, View<float>);
template void scale_cells<double>(double, Index, const Region&, View<double>);
template void space_to_depth_forward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void space_to_depth_forward<double>(
    Index, Index, View<const double>, const Region&, View<double>);
template void space_to_depth_backward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void space_to_depth_backward<double>(
    Index, Index, View<const double>, const Region&, View<double>);
template void reorg_forward<float>(
    const Reorg&, const MapShape&, View<const float>, const MapShape&, const Region&, View<float>);
template void reorg_forward<double>(const Reorg&,
                                    const MapShape&,
                                    View<const double>,
                                    const MapShape&,
                                    const Region&,
                                    View<double>);
template void reorg_backward<float>(
    const Reorg&, const MapShape&, View<const float>, const MapShape&, const Region&, View<float>);
template void reorg_backward<double>(const Reorg&,
                                     const MapShape&,
                                     View<const double>,
                                     const MapShape&,
                                     const Region&,
                                     View<double>);

}  // namespace tessera::engine
