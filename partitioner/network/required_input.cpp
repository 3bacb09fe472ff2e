// The receptive-field rule: what a layer must read to compute a region of its output. Each overload
// below gets a region that is not empty and lies inside the layer's map, and may leave a range of
// cells empty.

#include <algorithm>

#include "partitioner/base/errors.h"
#include "partitioner/network/network.h"

namespace tessera::partitioner {

namespace {

// Where a layer reads: the shape of the input asked about, its position among the inputs, and the
// whole network.
struct Reading {
  const Network& network;
  const LayerSpec& layer;
  std::size_t input = 0;
  MapShape in;
};

Index ceiling_quotient(Index numerator, Index denominator) {
  return (numerator + denominator - 1) / denominator;
}

// The cells from the first of some windows to the last, window i starting at i * stride - padding.
Range window_cells(const WindowAxis& axis, const Range& windows) {
  const Index begin = windows.begin * axis.stride - axis.padding;
  return {begin, begin + (windows.size() - 1) * axis.stride + axis.extent()};
}

// Those of `count` windows that have one of the cells, window i starting at i * stride - padding.
Range windows_of(const WindowAxis& axis, const Range& cells, Index count) {
  const Index begin = std::max<Index>(cells.begin + axis.padding - axis.extent() + 1, 0);
  const Range meeting{ceiling_quotient(begin, axis.stride),
                      (cells.end - 1 + axis.padding) / axis.stride + 1};
  return intersect(meeting, Range{0, count});
}

// Input cell i is output cell i * stride ... i * stride + stride - 1.
Range coarser_cells(const Range& cells, Index stride) {
  return {cells.begin / stride, ceiling_quotient(cells.end, stride)};
}

Region whole_images(const Reading& reading, const Range& images) {
  return {images, {0, reading.in.channels}, {0, reading.in.rows}, {0, reading.in.cols}};
}

Region required(const Convolution& convolution, const Reading& reading, const Region& output) {
  const Index filters_per_group = convolution.filters / convolution.groups;
  const Index channels_per_group = reading.in.channels / convolution.groups;
  const Range groups = coarser_cells(output.channels, filters_per_group);
  return {output.images,
          {groups.begin * channels_per_group, groups.end * channels_per_group},
          window_cells(convolution.rows(), output.rows),
          window_cells(convolution.cols(), output.cols)};
}

Region required(const Deconvolution& deconvolution, const Reading& reading, const Region& output) {
  return {output.images,
          {0, reading.in.channels},
          windows_of(deconvolution.rows(), output.rows, reading.in.rows),
          windows_of(deconvolution.cols(), output.cols, reading.in.cols)};
}

Region required(const MaxPool& pool, const Reading& reading, const Region& output) {
  const Region windows{output.images,
                       output.channels,
                       window_cells(pool.rows(), output.rows),
                       window_cells(pool.cols(), output.cols)};
  return intersect(windows, whole_images(reading, output.images));
}

// Of the channels k, k + outputs, ... for each k of the output.
Region required(const ChannelPool& pool, const Reading& reading, const Region& output) {
  const Range& ks = output.channels;
  const Index before = (reading.in.channels - 1) / pool.outputs * pool.outputs;
  const Index in_last_round = reading.in.channels - before;  // outputs that have a channel there
  Region region = output;
  region.channels.end = ks.begin < in_last_round ? before + std::min(ks.end, in_last_round)
                                                 : before - pool.outputs + ks.end;
  return region;
}

Region required(const AvgPool& /*pool*/, const Reading& reading, const Region& output) {
  return {output.images, output.channels, {0, reading.in.rows}, {0, reading.in.cols}};
}

Region required(const Connected& /*connected*/, const Reading& reading, const Region& output) {
  return whole_images(reading, output.images);
}

Region required(const Local& local, const Reading& reading, const Region& output) {
  const Region windows{output.images,
                       {0, reading.in.channels},
                       window_cells(local.axis(), output.rows),
                       window_cells(local.axis(), output.cols)};
  return intersect(windows, whole_images(reading, output.images));
}

Region required(const Dropout& /*dropout*/, const Reading& /*reading*/, const Region& output) {
  return output;
}

Region required(const Softmax& softmax, const Reading& reading, const Region& output) {
  Region region = output;
  if (softmax.spatial) {
    region.channels = {0, reading.in.channels};
    return region;
  }
  // The hull of the runs that the output touches, widened to whole channels.
  const Index cells = reading.in.rows * reading.in.cols;
  const Index run = reading.in.volume() / softmax.groups;
  const Index first =
      (output.channels.begin * cells + output.rows.begin * reading.in.cols + output.cols.begin) /
      run * run;
  const Index last = (output.channels.end - 1) * cells + (output.rows.end - 1) * reading.in.cols +
                     output.cols.end - 1;
  const Range values{first, (last / run + 1) * run};
  return {output.images, coarser_cells(values, cells), {0, reading.in.rows}, {0, reading.in.cols}};
}

Region required(const Cost& /*cost*/, const Reading& /*reading*/, const Region& output) {
  return output;
}

// Cells of the source that are added to `cells` of an output of `out` cells, with `in` cells in the
// source.
Range added_cells(const Range& cells, Index out, Index in) {
  if (in >= out) {
    return window_cells({.size = 1, .stride = in / out}, cells);
  }
  const Index every = out / in;
  return {ceiling_quotient(cells.begin, every), ceiling_quotient(cells.end, every)};
}

Region required(const Shortcut& /*shortcut*/, const Reading& reading, const Region& output) {
  if (reading.input == 0) {
    return output;
  }
  const MapShape& out = reading.layer.output;
  return {output.images,
          intersect(output.channels, {0, reading.in.channels}),
          added_cells(output.rows, out.rows, reading.in.rows),
          added_cells(output.cols, out.cols, reading.in.cols)};
}

Region required(const Sam& /*sam*/, const Reading& /*reading*/, const Region& output) {
  return output;
}

Region required(const ScaleChannels& scale, const Reading& reading, const Region& output) {
  Region region = output;
  if (reading.input == 0 && scale.by_place) {
    region.channels = {0, 1};
  } else if (reading.input == 0) {
    region.rows = {0, 1};
    region.cols = {0, 1};
  }
  return region;
}

Region required(const Route& route, const Reading& reading, const Region& output) {
  Index before = 0;  // output channels that earlier inputs fill
  for (std::size_t i = 0; i < reading.input; ++i) {
    before += reading.network.shape(reading.layer.inputs[i]).channels / route.groups;
  }
  const Index slice = reading.in.channels / route.groups;
  const Index offset = slice * route.group - before;
  const Range channels = intersect(output.channels, {before, before + slice});
  Region region = output;
  region.channels = {channels.begin + offset, channels.end + offset};
  return region;
}

Region required(const Upsample& upsample, const Reading& reading, const Region& output) {
  Region region = output;
  if (upsample.bilinear) {
    const auto around = [&](const Range& outs, Index cells) {
      const BetweenCells last = between_cells(outs.end - 1, upsample.stride, cells);
      return Range{between_cells(outs.begin, upsample.stride, cells).first,
                   last.first + (last.part > 0 ? 2 : 1)};
    };
    region.rows = around(output.rows, reading.in.rows);
    region.cols = around(output.cols, reading.in.cols);
    return region;
  }
  region.rows = coarser_cells(output.rows, upsample.stride);
  region.cols = coarser_cells(output.cols, upsample.stride);
  return region;
}

Region required(const Reorg& /*reorg*/, const Reading& reading, const Region& output) {
  return whole_images(reading, output.images);
}

Region required(const SpaceToDepth& space_to_depth, const Reading& reading, const Region& output) {
  const Index stride = space_to_depth.stride;
  const Index channels = reading.in.channels;
  // Output channels come in stride^2 blocks of all input channels; block dy * stride + dx reads
  // cell (dy, dx).
  const Range blocks = coarser_cells(output.channels, channels);
  const Range dy = coarser_cells(blocks, stride);
  const bool one_block = blocks.size() == 1;
  const Range dx = dy.size() == 1 ? Range{blocks.begin % stride, (blocks.end - 1) % stride + 1}
                                  : Range{0, stride};
  const Index block_begin = blocks.begin * channels;
  return {output.images,
          one_block ? Range{output.channels.begin - block_begin, output.channels.end - block_begin}
                    : Range{0, channels},
          {output.rows.begin * stride + dy.begin, (output.rows.end - 1) * stride + dy.end},
          {output.cols.begin * stride + dx.begin, (output.cols.end - 1) * stride + dx.end}};
}

// The first channel is of the first group that there is a channel of, the last one of the last.
Region required(const ChannelShuffle& shuffle, const Reading& reading, const Region& output) {
  const Index groups = shuffle.groups;
  const Index per_group = reading.in.channels / groups;
  const Index last = output.channels.end - 1;
  const auto source = [&](Index channel) {
    return channel % groups * per_group + channel / groups;
  };
  Region region = output;
  if (output.channels.begin / groups == last / groups) {
    region.channels = {source(output.channels.begin), source(last) + 1};
  } else {
    region.channels = {source(ceiling_quotient(output.channels.begin, groups) * groups),
                       source(output.channels.end / groups * groups - 1) + 1};
  }
  return region;
}

// A cell of a head is owned with all of its channels: see cut_mapping.h.
Region required(const YoloHead& /*head*/, const Reading& reading, const Region& output) {
  return {output.images, {0, reading.in.channels}, output.rows, output.cols};
}

Region required(const RegionHead& /*head*/, const Reading& reading, const Region& output) {
  return {output.images, {0, reading.in.channels}, output.rows, output.cols};
}

Region required(const YoloxHead& /*head*/, const Reading& reading, const Region& output) {
  return {output.images, {0, reading.in.channels}, output.rows, output.cols};
}

Region required(const GridHead& /*head*/, const Reading& reading, const Region& output) {
  return whole_images(reading, output.images);
}

Region required(const Crop& /*crop*/, const Reading& /*reading*/, const Region& output) {
  return output;
}

}  // namespace

Region required_input(const Network& network, int layer, std::size_t input, const Region& output) {
  const LayerSpec& spec = network.layer(layer);
  expects(input < spec.inputs.size(), "a layer has the input that is asked about");
  if (output.empty()) {
    return {};
  }
  Region whole = whole_map(network, layer, 0);
  whole.images = output.images;
  expects(contains(whole, output), "the output asked for lies inside the layer's map");
  const Reading reading{network, spec, input, network.shape(spec.inputs[input])};
  const Region region =
      std::visit([&](const auto& kind) { return required(kind, reading, output); }, spec.operation);
  return region.empty() ? Region{} : region;
}

}  // namespace tessera::partitioner
