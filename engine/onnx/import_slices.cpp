// Operators that join maps, or take some of their channels, or every few of their cells.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>

#include "engine/onnx/import_translation.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;
using Form = Value::Form;

// Slices of the same map at all offsets of a step: what space_to_depth makes, in another order of
// channels.
void join_samples(Translation& translation, const onnx::NodeProto& node) {
  const Value first = translation.input(node, 0);
  const Index step = first.rows.step;
  const Index channels = translation.network().shape(first.layer).channels;
  std::vector<int> order;
  std::vector<char> is_there(static_cast<std::size_t>(std::min<Index>(step * step, 4096)), 0);
  for (int i = 0; i < node.input_size(); ++i) {
    const Value& each = translation.input(node, i);
    const Index place = each.rows.begin * step + each.cols.begin;
    if (each.form != Form::Sampled || each.layer != first.layer || each.rows.step != step ||
        each.cols.step != step || place >= static_cast<Index>(is_there.size()) ||
        each.rows.begin >= step || each.cols.begin >= step ||
        is_there[static_cast<std::size_t>(place)]++ != 0) {
      translation.refuse(node, "joins slices with steps that are not all those of one map (Focus)");
    }
    for (Index channel = 0; channel < channels; ++channel) {
      order.push_back(static_cast<int>(place * channels + channel));
    }
  }
  if (node.input_size() != step * step) {
    translation.refuse(node, "joins slices with steps that are not all those of one map (Focus)");
  }
  const int layer = translation.add(node, partitioner::SpaceToDepth{.stride = step}, {first.layer});
  if (std::is_sorted(order.begin(), order.end())) {
    order.clear();
  }
  translation.put(
      node,
      0,
      {.layer = layer, .shape = translation.map_shape(layer), .channel_order = std::move(order)});
}

void translate_concatenation(Translation& translation, const onnx::NodeProto& node) {
  std::vector<Index> shape = translation.input(node, 0).shape;
  if (translation.input(node, 0).form == Form::Sampled) {
    join_samples(translation, node);
    return;
  }
  const std::size_t axis =
      dimension(translation.file(), node, integer(node, "axis", 1), shape.size());
  bool joins_maps = axis == 1;
  std::vector<int> layers;
  shape[axis] = 0;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value& each = translation.input(node, i);
    std::vector<Index> others = each.shape;
    if (each.form == Form::Constant || others.size() != shape.size()) {
      translation.refuse(node, "joins constants and maps, or values of several dimensions");
    }
    shape[axis] += std::exchange(others[axis], shape[axis]);
    others[axis] = shape[axis];
    if (others != shape) {
      translation.refuse(node, fmt::format("joins {} to {}", sides(each.shape), sides(shape)));
    }
    const MapShape map = translation.network().shape(each.layer);
    joins_maps = joins_maps && each.form == Form::Map &&
                 (each.shape == translation.map_shape(each.layer) || map.rows * map.cols == 1);
    layers.push_back(each.form == Form::Map ? translation.values(node, i).layer : each.layer);
  }
  if (!joins_maps) {
    translation.put_rearranged(node, 0, std::move(shape));
    return;
  }
  const int layer = translation.add(node, partitioner::Route{}, layers);
  translation.put(node, 0, {.layer = layer, .shape = std::move(shape)});
}

// Channels [begin, end) of a map, of which a route takes one of so many equal parts.
int route_of(
    Translation& translation, const onnx::NodeProto& node, int layer, Index begin, Index end) {
  constexpr Index kMostRoutes = 64;
  const Index channels = translation.network().shape(layer).channels;
  const Index part = std::gcd(std::gcd(begin, end), channels);
  if ((end - begin) / part > kMostRoutes) {
    translation.refuse(node,
                       fmt::format("takes channels {} to {} of {}: a [route] section takes one of "
                                   "equal groups",
                                   begin,
                                   end - 1,
                                   channels));
  }
  std::vector<int> parts;
  for (Index at = begin; at < end; at += part) {
    parts.push_back(translation.add(
        node, partitioner::Route{.groups = channels / part, .group = at / part}, {layer}));
  }
  return parts.size() == 1 ? parts.front() : translation.add(node, partitioner::Route{}, parts);
}

void translate_split(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  const std::size_t axis =
      dimension(translation.file(), node, integer(node, "axis", 0), in.shape.size());
  std::vector<Index> parts = integers_at(node, "split", translation.constants(node), 1);
  const Index count = integer(node, "num_outputs", node.output_size());
  if (parts.empty() && count > 0 && count == node.output_size()) {
    const Index part = (in.shape[axis] + count - 1) / count;
    parts.assign(static_cast<std::size_t>(count), part);
    parts.back() = in.shape[axis] - part * (count - 1);
  }
  if (static_cast<int>(parts.size()) != node.output_size() ||
      std::any_of(parts.begin(),
                  parts.end(),
                  [&](Index part) { return part < 1 || part > in.shape[axis]; }) ||
      std::accumulate(parts.begin(), parts.end(), Index{0}) != in.shape[axis]) {
    translation.refuse(node,
                       fmt::format("splits {} into {}", in.shape[axis], fmt::join(parts, ", ")));
  }
  Index begin = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    const Index end = begin + parts[static_cast<std::size_t>(i)];
    std::vector<Index> shape = in.shape;
    shape[axis] = end - begin;
    if (in.form == Form::Rearranged || axis != 1) {
      translation.put_rearranged(node, i, std::move(shape));
    } else if (node.output(i).empty() || !translation.is_read(node.output(i))) {
      // nobody wants it
    } else {
      const int layer = route_of(translation, node, translation.map(node, 0).layer, begin, end);
      translation.put(node, i, {.layer = layer, .shape = std::move(shape)});
    }
    begin = end;
  }
}

void put_sampled(Translation& translation,
                 const onnx::NodeProto& node,
                 const std::vector<SliceRange>& ranges,
                 std::vector<Index> shape) {
  const Value& in = translation.input(node, 0);
  Value out = in.form == Form::Sampled ? in : translation.map(node, 0);
  const bool first = in.form != Form::Sampled;
  out.form = Form::Sampled;
  out.rows = first || ranges[2].step > 1 ? ranges[2] : in.rows;
  out.cols = first || ranges[3].step > 1 ? ranges[3] : in.cols;
  const bool twice = !first && ((ranges[2].step > 1 && in.rows.step > 1) ||
                                (ranges[3].step > 1 && in.cols.step > 1));
  for (const std::size_t axis : {0, 1, 2, 3}) {
    const SliceRange& range = ranges[axis];
    if (twice || range.end != in.shape[axis] || range.begin >= range.step ||
        (axis < 2 && range.step != 1)) {
      translation.refuse(node,
                         "takes part of the rows or columns of a map, which no section does (but "
                         "every second one, as Focus has it)");
    }
  }
  out.shape = std::move(shape);
  translation.put(node, 0, std::move(out));
}

void translate_slice(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  const std::vector<SliceRange> ranges =
      slice_ranges(translation.file(), node, translation.constants(node), in.shape);
  std::vector<Index> shape;
  for (const SliceRange& range : ranges) {
    shape.push_back(range.count());
  }
  if (in.form == Form::Rearranged) {
    translation.put_rearranged(node, 0, std::move(shape));
    return;
  }
  if (shape == in.shape) {
    translation.put_alias(node, 0, std::move(shape));
    return;
  }
  std::vector<Index> by_channel = in.shape;
  by_channel[std::min<std::size_t>(1, in.shape.size() - 1)] = shape.size() > 1 ? shape[1] : 0;
  if (in.form == Form::Map && shape == by_channel && ranges[1].step == 1 && shape[1] > 0) {
    const Value& map = translation.map(node, 0);
    const int layer = route_of(translation, node, map.layer, ranges[1].begin, ranges[1].end);
    translation.put(node, 0, {.layer = layer, .shape = std::move(shape)});
    return;
  }
  if (shape.size() != 4) {
    translation.refuse(node, "takes part of what is no map");
  }
  put_sampled(translation, node, ranges, std::move(shape));
}

constexpr OperatorRow kSliceRows[] = {{"Concat", translate_concatenation, true},
                                      {"Split", translate_split, true},
                                      {"Slice", translate_slice, true}};

}  // namespace

OperatorRows slice_operators() {
  return kSliceRows;
}

}  // namespace tessera::engine
