#include <algorithm>
#include <type_traits>

#include "engine/ops/rearrange/cell_rows.h"
#include "engine/ops/rearrange/rearrange.h"
#include "engine/ops/simd/block_kernels.h"

namespace tessera::engine {

using partitioner::ChannelShuffle;
using partitioner::MapShape;
using partitioner::Reorg;
using partitioner::SpaceToDepth;

namespace {

// A number of a map.
struct Place {
  Index channel = 0;
  Index row = 0;
  Index col = 0;
};

// So many columns further in an output, its numbers come from so many columns further in the input.
struct ColumnSteps {
  Index out = 1;
  Index in = 1;
};

Place source(const SpaceToDepth& layer, const MapShape& in, const Place& out) {
  const Index cell = out.channel / in.channels;
  return {out.channel - cell * in.channels,
          out.row * layer.stride + cell / layer.stride,
          out.col * layer.stride + cell % layer.stride};
}

ColumnSteps steps(const SpaceToDepth& layer) {
  return {1, layer.stride};
}

Place source(const ChannelShuffle& layer, const MapShape& in, const Place& out) {
  const Index member = out.channel / layer.groups;
  const Index group = out.channel - member * layer.groups;
  return {group * (in.channels / layer.groups) + member, out.row, out.col};
}

ColumnSteps steps(const ChannelShuffle& /*layer*/) {
  return {};
}

// Darknet splits the C channels of its (C, H, W) view of memory into stride^2 runs of C / stride^2
// and spreads them over a map of C / stride^2 channels, H * stride rows and W * stride columns;
// [reorg] without `reverse` gathers instead, and a row of its output is a part of one of the view.
Place source(const Reorg& layer, const MapShape& in, const Place& out) {
  const Index stride = layer.stride;
  const Index run = in.channels / (stride * stride);
  if (layer.reverse) {
    const Index offset = out.row % stride * stride + out.col % stride;
    return {offset * run + out.channel, out.row / stride, out.col / stride};
  }
  const Index part = out.channel * (in.rows / stride) + out.row;
  const Index row = part / stride;
  const Index channel = row / in.rows;
  const Index offset = channel / run;
  const Index spread_row = (channel % run * in.rows + row % in.rows) * stride + offset / stride;
  const Index from = spread_row * stride + part % stride;
  return {from / in.rows, from % in.rows, out.col * stride + offset % stride};
}

ColumnSteps steps(const Reorg& layer) {
  return layer.reverse ? ColumnSteps{layer.stride, 1} : ColumnSteps{1, layer.stride};
}

// Calls visit(rows) with the cells that belong together, as many channels at once as lie side by
// side in both maps.
template <class Layer, class Out, class In, class Visit>
void for_each_moved(const Layer& layer,
                    const MapShape& in_shape,
                    const View<In>& in,
                    const Region& region,
                    const View<Out>& out,
                    Visit visit) {
  const ColumnSteps step = steps(layer);
  const auto visit_from = [&](const Range& run, Index n, Index row, Index col) {
    const auto from = [&](Index channel) {
      const Place place = source(layer, in_shape, {channel, row, col});
      return &in.at(n, place.channel, place.row, place.col);
    };
    CellRows<Out, In> rows{line_start(out, run, n, row, col),
                           step.out * out.block,
                           from(run.begin),
                           step.in * in.block,
                           (region.cols.end - col + step.out - 1) / step.out,
                           1};
    for (Index channel = run.begin + 1; channel < run.end; ++channel) {
      In* next = from(channel);
      if (next == rows.from + rows.channels) {
        ++rows.channels;
      } else {
        visit(rows);
        rows.to += rows.channels;
        rows.from = next;
        rows.channels = 1;
      }
    }
    visit(rows);
  };
  for_each_line(
      region, channel_runs(region.channels, out), [&](const Range& run, Index n, Index row) {
        const Index end = std::min(region.cols.begin + step.out, region.cols.end);
        for (Index col = region.cols.begin; col < end; ++col) {
          visit_from(run, n, row, col);
        }
      });
}

// Channel shuffles of all channels go by planes, (channels, cells), of some cells at a time, in the
// order of the output: vectors turn cells into planes and back, where for_each_moved() would move
// number by number.

// Numbers of planes, so many that they stay in a processor's first cache.
template <class T>
constexpr Index kPlanes = 32768 / static_cast<Index>(sizeof(T));
constexpr Index kLeastCells = 8;

template <class T>
bool by_planes(const MapShape& in_shape, const Region& region) {
  return region.channels.size() == in_shape.channels &&
         in_shape.channels * kLeastCells <= kPlanes<T>;
}

// Cells that lie side by side from (row, col) of image n on: `count` of them, after `first` others.
struct SomeCells {
  Index n = 0;
  Index row = 0;
  Index col = 0;
  Index first = 0;
  Index count = 0;
};

// Those of the channels, `step` apart.
template <class T>
void read_planes(const SomeCells& cells,
                 const View<const T>& from,
                 const Range& channels,
                 T* planes,
                 Index step) {
  const auto read = [&](const Range& run) {
    const T* x = line_start(from, run, cells.n, cells.row, cells.col) + cells.first * from.block;
    T* to = planes + (run.begin - channels.begin) * step;
    block_kernels<T>().transpose({x, from.block, to, step}, cells.count, run.size());
  };
  for_each_channel_run(channels, read, from);
}

template <class T>
void write_planes(const SomeCells& cells,
                  const View<T>& to,
                  const Range& channels,
                  const T* planes,
                  Index step,
                  bool add) {
  const auto write = [&](const Range& run) {
    T* y = line_start(to, run, cells.n, cells.row, cells.col) + cells.first * to.block;
    const Transpose<T> job{planes + (run.begin - channels.begin) * step, step, y, to.block};
    const BlockKernels<T>& kernels = block_kernels<T>();
    (add ? kernels.add_transposed : kernels.transpose)(job, run.size(), cells.count);
  };
  for_each_channel_run(channels, write, to);
}

// Calls visit(cells, planes), with room for the planes of all channels of the cells.
template <class T, class Out, class In, class Visit>
void for_each_planes(const Region& region, const View<Out>& out, const View<In>& in, Visit visit) {
  const Index most = kPlanes<T> / region.channels.size() / kLeastCells * kLeastCells;
  for_each_rows(
      region,
      {region.channels},
      [&](const Range& /*channels*/, Index n, const Range& rows) {
        alignas(kAlignment) T planes[kPlanes<T>];
        const Index all = rows.size() * region.cols.size();
        for (Index first = 0; first < all; first += most) {
          visit(SomeCells{n, rows.begin, region.cols.begin, first, std::min(most, all - first)},
                &planes[0]);
        }
      },
      out,
      in);
}

template <class T>
void shuffle_forward(const ChannelShuffle& layer,
                     const View<const T>& in,
                     const Region& region,
                     const View<T>& out) {
  const Index members = region.channels.size() / layer.groups;
  for_each_planes<T>(region, out, in, [&](const SomeCells& cells, T* planes) {
    for (Index group = 0; group < layer.groups; ++group) {
      read_planes(cells,
                  in,
                  {group * members, (group + 1) * members},
                  planes + group * cells.count,
                  layer.groups * cells.count);
    }
    write_planes(cells, out, region.channels, planes, cells.count, false);
  });
}

template <class T>
void shuffle_backward(const ChannelShuffle& layer,
                      const View<const T>& out_gradient,
                      const Region& region,
                      const View<T>& in_gradient,
                      bool assign) {
  const Index members = region.channels.size() / layer.groups;
  for_each_planes<T>(region, out_gradient, in_gradient, [&](const SomeCells& cells, T* planes) {
    read_planes(cells, out_gradient, region.channels, planes, cells.count);
    for (Index group = 0; group < layer.groups; ++group) {
      write_planes(cells,
                   in_gradient,
                   {group * members, (group + 1) * members},
                   planes + group * cells.count,
                   layer.groups * cells.count,
                   !assign);
    }
  });
}

}  // namespace

template <class Layer, class T>
void permute_forward(const Layer& layer,
                     const MapShape& in_shape,
                     View<const T> in,
                     const Region& region,
                     View<T> out) {
  if constexpr (std::is_same_v<Layer, ChannelShuffle>) {
    if (by_planes<T>(in_shape, region)) {
      shuffle_forward(layer, in, region, out);
      return;
    }
  }
  for_each_moved(layer, in_shape, in, region, out, [](const auto& rows) { copy_rows(rows); });
}

template <class Layer, class T>
void permute_backward(const Layer& layer,
                      const MapShape& in_shape,
                      View<const T> out_gradient,
                      const Region& region,
                      View<T> in_gradient,
                      bool assign) {
  if constexpr (std::is_same_v<Layer, ChannelShuffle>) {
    if (by_planes<T>(in_shape, region)) {
      shuffle_backward(layer, out_gradient, region, in_gradient, assign);
      return;
    }
  }
  if (assign) {
    for_each_moved(layer, in_shape, in_gradient, region, out_gradient, [](const auto& rows) {
      copy_rows(rows.reversed());
    });
  } else {
    for_each_moved(layer, in_shape, in_gradient, region, out_gradient, [](const auto& rows) {
      for_each_number(rows, [](const T& from, T& to) { to += from; });
    });
  }
}

template void permute_forward(
    const SpaceToDepth&, const MapShape&, View<const float>, const Region&, View<float>);
template void permute_backward(
    const SpaceToDepth&, const MapShape&, View<const float>, const Region&, View<float>, bool);
template void permute_forward(
    const SpaceToDepth&, const MapShape&, View<const double>, const Region&, View<double>);
template void permute_backward(
    const SpaceToDepth&, const MapShape&, View<const double>, const Region&, View<double>, bool);
template void permute_forward(
    const ChannelShuffle&, const MapShape&, View<const float>, const Region&, View<float>);
template void permute_backward(
    const ChannelShuffle&, const MapShape&, View<const float>, const Region&, View<float>, bool);
template void permute_forward(
    const ChannelShuffle&, const MapShape&, View<const double>, const Region&, View<double>);
template void permute_backward(
    const ChannelShuffle&, const MapShape&, View<const double>, const Region&, View<double>, bool);
template void permute_forward(
    const Reorg&, const MapShape&, View<const float>, const Region&, View<float>);
template void permute_backward(
    const Reorg&, const MapShape&, View<const float>, const Region&, View<float>, bool);
template void permute_forward(
    const Reorg&, const MapShape&, View<const double>, const Region&, View<double>);
template void permute_backward(
    const Reorg&, const MapShape&, View<const double>, const Region&, View<double>, bool);

}  // namespace tessera::engine
