#include "partitioner/network/output_shape.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace tessera::partitioner {

namespace {

// Far beyond any machine, and small enough that sizes, offsets and the product of two extents never
// overflow an Index.
constexpr Index kLargestTensor = Index{1} << 40;
constexpr Index kLargestNumber = (Index{1} << 31) - 1;

std::string text(Index number) {
  return std::to_string(number);
}

std::string text(const MapShape& shape) {
  return text(shape.channels) + 'x' + text(shape.rows) + 'x' + text(shape.cols);
}

void require_number(const char* key, Index value, Index least = 1) {
  require(value >= least && value <= kLargestNumber,
          std::string(key) + '=' + text(value) + " must be between " + text(least) + " and " +
              text(kLargestNumber));
}

void require_numbers(const char* key, const PerAxis& values, Index least = 1) {
  require_number(key, values.rows, least);
  require_number(key, values.cols, least);
}

void require_tensor(const char* what, Index a, Index b, Index c) {
  require(saturating_product(saturating_product(a, b), c) <= kLargestTensor,
          std::string(what) + " of " + text(a) + 'x' + text(b) + 'x' + text(c) +
              " values is larger than this program can address (2^40 values)");
}

void require_map(const MapShape& shape) {
  require(shape.channels >= 1 && shape.rows >= 1 && shape.cols >= 1,
          "a map of " + text(shape) + " (channels x rows x columns) has no cells");
  require(std::max({shape.channels, shape.rows, shape.cols}) <= kLargestNumber,
          "a map of " + text(shape) + " (channels x rows x columns) is longer than " +
              text(kLargestNumber) + " in one direction");
  require_tensor("a map", shape.channels, shape.rows, shape.cols);
}

void require_weights(Index outputs, Index row) {
  require_tensor("a weight", outputs, row, 1);
}

// Windows along one dimension: `before` and `after` cells of border. Every one must touch the map.
struct Windows {
  const char* kind = "";
  Index size = 1;  // from the first cell to the last
  Index stride = 1;
  Index before = 0;
  Index after = 0;
};

Index window_count(const Windows& windows, const char* dimension, Index cells) {
  const std::string window =
      std::string(windows.kind) + " window of " + text(windows.size) + " cells";
  const Index room = cells + windows.before + windows.after - windows.size;
  require(room >= 0,
          "a " + window + " does not fit on a map of " + text(cells) + ' ' + dimension + " with " +
              text(windows.before + windows.after) +
              " cells of padding: use a smaller size or more padding");
  const Index count = room / windows.stride + 1;
  require(windows.size > windows.before,
          "the first " + window + " would lie wholly in the padding of " + text(windows.before) +
              " cells: use less padding or a larger size");
  require((count - 1) * windows.stride - windows.before < cells,
          "the last " + window + " would lie wholly outside the map of " + text(cells) + ' ' +
              dimension + ": use less padding or another stride");
  return count;
}

using Shapes = std::vector<MapShape>;

// One output_shape for each kind: its checks and the shape of its map, from the shapes of its
// inputs.

MapShape shape_of(const Convolution& convolution, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("filters", convolution.filters);
  require_numbers("size", convolution.size);
  require_numbers("stride", convolution.stride);
  require_numbers("padding", convolution.padding, 0);
  require_numbers("padding_end", convolution.padding_end(), 0);
  require_number("groups", convolution.groups);
  require_number("dilation", convolution.dilation);
  for (const Index size : {convolution.size.rows, convolution.size.cols}) {
    require_number(
        "size - 1 times dilation", saturating_product(size - 1, convolution.dilation), 0);
  }
  require(in.channels % convolution.groups == 0,
          "groups=" + text(convolution.groups) + " does not divide the " + text(in.channels) +
              " input channels");
  require(convolution.filters % convolution.groups == 0,
          "groups=" + text(convolution.groups) +
              " does not divide filters=" + text(convolution.filters));
  require_tensor(
      "a filter", in.channels / convolution.groups, convolution.size.rows, convolution.size.cols);
  require_weights(convolution.filters,
                  in.channels / convolution.groups * convolution.size.product());
  const auto windows = [&](const WindowAxis& axis, Index after) {
    return Windows{.kind = "convolution",
                   .size = axis.extent(),
                   .stride = axis.stride,
                   .before = axis.padding,
                   .after = after};
  };
  const PerAxis after = convolution.padding_end();
  return {convolution.filters,
          window_count(windows(convolution.rows(), after.rows), "rows", in.rows),
          window_count(windows(convolution.cols(), after.cols), "columns", in.cols)};
}

MapShape shape_of(const Deconvolution& deconvolution, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("filters", deconvolution.filters);
  require_numbers("size", deconvolution.size);
  require_numbers("stride", deconvolution.stride);
  require_numbers("padding", deconvolution.padding, 0);
  const PerAxis after = deconvolution.padding_end();
  require_number("padding_end", after.rows, 1 - deconvolution.stride.rows);
  require_number("padding_end", after.cols, 1 - deconvolution.stride.cols);
  require_tensor("a filter", in.channels, deconvolution.size.rows, deconvolution.size.cols);
  require_weights(deconvolution.filters, in.channels * deconvolution.size.product());
  const auto cells = [](const WindowAxis& axis, Index end, Index of_input) {
    return saturating_product(of_input - 1, axis.stride) + axis.size - axis.padding - end;
  };
  return {deconvolution.filters,
          cells(deconvolution.rows(), after.rows, in.rows),
          cells(deconvolution.cols(), after.cols, in.cols)};
}

MapShape shape_of(const MaxPool& pool, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("size", pool.size);
  require(pool.size <= kLargestPool,
          "pooling size " + text(pool.size) + " is more than " + text(kLargestPool));
  require_numbers("stride", pool.stride);
  require_numbers("padding", pool.padding, 0);
  const auto windows = [&](const WindowAxis& axis, Index padding) {
    return Windows{.kind = "pooling",
                   .size = axis.size,
                   .stride = axis.stride,
                   .before = axis.padding,
                   .after = padding - axis.padding};
  };
  return {in.channels,
          window_count(windows(pool.rows(), pool.padding.rows), "rows", in.rows),
          window_count(windows(pool.cols(), pool.padding.cols), "columns", in.cols)};
}

MapShape shape_of(const ChannelPool& pool, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("out_channels", pool.outputs);
  require(pool.outputs <= in.channels,
          "out_channels=" + text(pool.outputs) + " are more than the " + text(in.channels) +
              " input channels");
  const Index together = (in.channels + pool.outputs - 1) / pool.outputs;
  require(together <= kMostPooledChannels,
          "out_channels=" + text(pool.outputs) + " of " + text(in.channels) +
              " input channels: each would be the largest of " + text(together) + ", more than " +
              text(kMostPooledChannels));
  return {pool.outputs, in.rows, in.cols};
}

MapShape shape_of(const AvgPool& /*pool*/, const Shapes& inputs) {
  return {inputs[0].channels, 1, 1};
}

MapShape shape_of(const Connected& connected, const Shapes& inputs) {
  require_number("output", connected.outputs);
  require_weights(connected.outputs, inputs[0].volume());
  return {connected.outputs, 1, 1};
}

MapShape shape_of(const Local& local, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("filters", local.filters);
  require_number("size", local.size);
  require_number("stride", local.stride);
  require_number("padding", local.padding, 0);
  const Windows windows{.kind = "local",
                        .size = local.size,
                        .stride = local.stride,
                        .before = local.padding,
                        .after = local.padding};
  const MapShape out{local.filters,
                     window_count(windows, "rows", in.rows),
                     window_count(windows, "columns", in.cols)};
  require_map(out);
  require_tensor("a filter", in.channels, local.size, local.size);
  require_weights(out.volume(), in.channels * local.size * local.size);
  return out;
}

MapShape shape_of(const Dropout& dropout, const Shapes& inputs) {
  require(
      dropout.probability >= 0 && dropout.probability < 1,
      "probability=" + std::to_string(dropout.probability) + " must be at least 0 and less than 1");
  return inputs[0];
}

MapShape shape_of(const Softmax& softmax, const Shapes& inputs) {
  require_number("groups", softmax.groups);
  require(softmax.temperature > 0,
          "temperature=" + std::to_string(softmax.temperature) + " must be positive");
  require(!softmax.spatial || softmax.groups == 1,
          "a softmax with spatial=1 is over all channels of each cell: leave out groups=" +
              text(softmax.groups));
  require(inputs[0].volume() % softmax.groups == 0,
          "groups=" + text(softmax.groups) + " does not divide the " + text(inputs[0].volume()) +
              " input values");
  return inputs[0];
}

MapShape shape_of(const Cost& /*cost*/, const Shapes& inputs) {
  return inputs[0];
}

MapShape shape_of(const Shortcut& /*shortcut*/, const Shapes& inputs) {
  const MapShape& out = inputs[0];
  for (std::size_t i = 1; i < inputs.size() && inputs.size() > 2; ++i) {
    require(inputs[i] == out,
            "a shortcut from several layers, of maps of " + text(out) + " and " + text(inputs[i]) +
                " (channels x rows x columns): all must have the same shape");
  }
  const MapShape& source = inputs[1];
  const bool sampled = source.rows % out.rows == 0 && source.cols % out.cols == 0 &&
                       source.rows / out.rows == source.cols / out.cols;
  const bool spread = out.rows % source.rows == 0 && out.cols % source.cols == 0 &&
                      out.rows / source.rows == out.cols / source.cols;
  require(sampled || spread,
          "a shortcut from a map of " + text(source) + " to one of " + text(out) +
              " (channels x rows x columns): rows and columns must be the same multiple of one "
              "another");
  return out;
}

MapShape shape_of(const Sam& /*sam*/, const Shapes& inputs) {
  require(inputs[0] == inputs[1],
          "sam multiplies maps of " + text(inputs[0]) + " and " + text(inputs[1]) +
              " (channels x rows x columns): they must have the same shape");
  return inputs[0];
}

MapShape shape_of(const ScaleChannels& scale, const Shapes& inputs) {
  const MapShape& map = inputs[1];
  const MapShape expected =
      scale.by_place ? MapShape{1, map.rows, map.cols} : MapShape{map.channels, 1, 1};
  require(inputs[0] == expected,
          "scale_channels of a map of " + text(map) +
              " (channels x rows x columns) takes factors of " + text(expected) +
              ", but the layer before it has a map of " + text(inputs[0]));
  return map;
}

MapShape shape_of(const Route& route, const Shapes& inputs) {
  require_number("groups", route.groups);
  require(route.group >= 0 && route.group < route.groups,
          "group_id=" + text(route.group) +
              " must be at least 0 and less than groups=" + text(route.groups));
  MapShape out{0, inputs[0].rows, inputs[0].cols};
  for (const MapShape& in : inputs) {
    require(in.rows == out.rows && in.cols == out.cols,
            "a route joins maps of " + text(inputs[0]) + " and " + text(in) +
                " (channels x rows x columns): rows and columns must agree");
    require(in.channels % route.groups == 0,
            "groups=" + text(route.groups) + " does not divide the " + text(in.channels) +
                " channels of an input");
    out.channels += in.channels / route.groups;
    require_map(out);
  }
  return out;
}

MapShape shape_of(const Upsample& upsample, const Shapes& inputs) {
  require_number("stride", upsample.stride);
  return {inputs[0].channels,
          saturating_product(inputs[0].rows, upsample.stride),
          saturating_product(inputs[0].cols, upsample.stride)};
}

// (C, H, W) to (C * stride^2, H / stride, W / stride).
MapShape cells_to_channels(const char* kind, const MapShape& in, Index stride) {
  require_number("stride", stride);
  require(in.rows % stride == 0 && in.cols % stride == 0,
          std::string(kind) + " with stride=" + text(stride) + " of a map of " + text(in) +
              " (channels x rows x columns): the stride must divide rows and columns");
  return {saturating_product(in.channels, stride * stride), in.rows / stride, in.cols / stride};
}

MapShape shape_of(const Reorg& reorg, const Shapes& inputs) {
  const MapShape& in = inputs[0];
  require_number("stride", reorg.stride);
  // In both directions: the flat order is that of maps with a stride^2-th of the channels.
  require(in.channels % (reorg.stride * reorg.stride) == 0,
          "reorg with stride=" + text(reorg.stride) + " of " + text(in.channels) +
              " channels: the square of the stride must divide them");
  if (!reorg.reverse) {
    return cells_to_channels("reorg", in, reorg.stride);
  }
  return {in.channels / (reorg.stride * reorg.stride),
          saturating_product(in.rows, reorg.stride),
          saturating_product(in.cols, reorg.stride)};
}

MapShape shape_of(const SpaceToDepth& space_to_depth, const Shapes& inputs) {
  return cells_to_channels("space_to_depth", inputs[0], space_to_depth.stride);
}

MapShape shape_of(const ChannelShuffle& shuffle, const Shapes& inputs) {
  require_number("groups", shuffle.groups);
  require(inputs[0].channels % shuffle.groups == 0,
          "groups=" + text(shuffle.groups) + " does not divide the " + text(inputs[0].channels) +
              " input channels");
  return inputs[0];
}

MapShape shape_of(const Crop& /*crop*/, const Shapes& inputs) {
  return inputs[0];
}

void require_anchors(const std::vector<Anchor>& anchors) {
  for (const Anchor& anchor : anchors) {
    require(anchor.width > 0 && anchor.height > 0,
            "anchors must be positive: one is " + std::to_string(anchor.width) + " x " +
                std::to_string(anchor.height));
  }
}

// `boxes` anchors of a head, each with its values for every class.
void require_head_channels(const MapShape& in, Index boxes, Index classes) {
  require_number("classes", classes);
  require(boxes >= 1, "a head needs at least one anchor");
  const Index expected = saturating_product(boxes, kBoxValues + classes);
  require(in.channels == expected,
          "its input has " + text(in.channels) + " channels, but " + text(boxes) + " anchors and " +
              text(classes) + " classes take " + text(boxes) + " x (5 + " + text(classes) + ") = " +
              text(expected) + ": set filters=" + text(expected) + " in the layer before it");
}

MapShape shape_of(const YoloHead& head, const Shapes& inputs) {
  require_anchors(head.anchors);
  const auto total = static_cast<int>(head.anchors.size());
  for (const int anchor : head.mask) {
    require(anchor >= 0 && anchor < total,
            "mask has " + std::to_string(anchor) + ", but anchors are numbered from 0 to " +
                std::to_string(total - 1));
  }
  require_head_channels(inputs[0], static_cast<Index>(head.mask.size()), head.classes);
  require(
      head.class_weights.empty() || static_cast<Index>(head.class_weights.size()) == head.classes,
      "counters_per_class has " + std::to_string(head.class_weights.size()) +
          " numbers for classes=" + text(head.classes));
  return inputs[0];
}

MapShape shape_of(const RegionHead& head, const Shapes& inputs) {
  require_anchors(head.anchors);
  require_head_channels(inputs[0], static_cast<Index>(head.anchors.size()), head.classes);
  return inputs[0];
}

MapShape shape_of(const YoloxHead& head, const Shapes& inputs) {
  require_number("classes", head.classes);
  require_number("max", head.most_boxes);
  require(inputs[0].channels == head_channels(head),
          "its input has " + text(inputs[0].channels) + " channels, but a box and " +
              text(head.classes) + " classes take 5 + " + text(head.classes) + " = " +
              text(head_channels(head)) + ": x, y, width, height, objectness, then the classes");
  return inputs[0];
}

MapShape shape_of(const GridHead& head, const Shapes& inputs) {
  require_number("side", head.side);
  require_number("num", head.boxes);
  require_number("classes", head.classes);
  require(!head.forced || head.boxes >= 2, "forced=1 needs num=2 or more boxes of each cell");
  require_tensor("a head", head.side * head.side, head.classes, head.boxes);
  require(inputs[0].rows == 1 && inputs[0].cols == 1,
          "[detection] reads one vector: put a [connected] before it");
  require(inputs[0].volume() == head_values(head),
          "its input has " + text(inputs[0].volume()) + " values, but side=" + text(head.side) +
              ", num=" + text(head.boxes) + " and classes=" + text(head.classes) + " take " +
              text(head_values(head)) + ": set output=" + text(head_values(head)) +
              " in the layer before it");
  return inputs[0];
}

}  // namespace

void require(bool condition, const std::string& message) {
  if (!condition) {
    throw std::invalid_argument(message);
  }
}

Index saturating_product(Index a, Index b) {
  Index product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<Index>::max() : product;
}

MapShape output_shape(const Operation& operation, const std::vector<MapShape>& inputs) {
  for (const MapShape& shape : inputs) {
    require_map(shape);
  }
  const MapShape output =
      std::visit([&](const auto& kind) { return shape_of(kind, inputs); }, operation);
  require_map(output);
  return output;
}

}  // namespace tessera::partitioner
