#include "engine/ops/loops/threads.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

using partitioner::MapShape;
using partitioner::Reorg;

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

// For each output channel of the region: the input channel that it takes.
template <class Out, class In, class Visit>
void for_each_shuffled(
    Index groups, Index channels, View<Out> out, const Region& region, View<In> in, Visit visit) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.images, region.rows, [&](Index n, Index row) {
    for (Index c = region.channels.begin; c < region.channels.end; ++c) {
      const Index source = c % groups * (channels / groups) + c / groups;
      Out* to = &out.at(n, c, row, region.cols.begin);
      In* from = &in.at(n, source, row, region.cols.begin);
      for (Index col = 0; col < region.cols.size(); ++col) {
        visit(to[col * out.block], from[col * in.block]);
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

template <class T>
void shuffle_channels_forward(
    Index groups, Index channels, View<const T> in, const Region& region, View<T> out) {
  for_each_shuffled(groups, channels, out, region, in, [](T& to, const T& from) { to = from; });
}

template <class T>
void shuffle_channels_backward(Index groups,
                               Index channels,
                               View<const T> out_gradient,
                               const Region& region,
                               View<T> in_gradient) {
  for_each_shuffled(groups, channels, out_gradient, region, in_gradient, [](const T& from, T& to) {
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

template void space_to_depth_forward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void space_to_depth_forward<double>(
    Index, Index, View<const double>, const Region&, View<double>);
template void space_to_depth_backward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void space_to_depth_backward<double>(
    Index, Index, View<const double>, const Region&, View<double>);
template void shuffle_channels_forward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void shuffle_channels_forward<double>(
    Index, Index, View<const double>, const Region&, View<double>);
template void shuffle_channels_backward<float>(
    Index, Index, View<const float>, const Region&, View<float>);
template void shuffle_channels_backward<double>(
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
