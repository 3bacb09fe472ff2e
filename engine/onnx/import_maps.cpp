// Operators that combine maps, take parts of them, or only see them in another shape.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "engine/onnx/import_activations.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;
using Form = Value::Form;

bool is_constant(const Translation& translation, const onnx::NodeProto& node, int i) {
  return translation.input(node, i).form == Form::Constant;
}

// A constant that is added to what a layer without a bias has computed.
void add_bias(Translation& translation, const onnx::NodeProto& node) {
  const int from = is_constant(translation, node, 0) ? 1 : 0;
  const Value in = translation.values(node, from);
  const Constant& bias = translation.constant(node, 1 - from, "constant");
  const std::size_t behind = in.shape.size() == 4 ? 2 : 0;  // dimensions behind channels
  const bool fits = in.layer != partitioner::kImage &&
                    volume_of(bias.shape) == translation.network().shape(in.layer).channels &&
                    bias.shape.size() > behind &&
                    bias.shape[bias.shape.size() - 1 - behind] == volume_of(bias.shape);
  const partitioner::Operation* const operation =
      in.layer == partitioner::kImage ? nullptr : &translation.operation(in.layer);
  if (!fits || !has_weights(*operation) || normalizes(*operation) ||
      activation_of(*operation) != partitioner::Activation::Linear ||
      translation.parameters(in.layer).bias || !translation.is_only_reader(node, from)) {
    translation.refuse(node, "adds a constant, which is no bias of the layer before it");
  }
  translation.parameters(in.layer).bias = bias;
  translation.put(node, 0, {.layer = in.layer, .shape = in.shape});
}

void translate_sum(Translation& translation, const onnx::NodeProto& node) {
  if (node.input_size() == 2 &&
      (is_constant(translation, node, 0) || is_constant(translation, node, 1))) {
    add_bias(translation, node);
    return;
  }
  const Value first = translation.values(node, 0);
  std::vector<int> layers;
  for (int i = 0; i < node.input_size(); ++i) {
    const Value& each = translation.values(node, i);
    if (each.shape != first.shape ||
        translation.map_shape(each.layer) != translation.map_shape(first.layer)) {
      translation.refuse(node,
                         fmt::format("adds {} and {}: a [shortcut] section adds maps of the same "
                                     "shape",
                                     sides(first.shape),
                                     sides(each.shape)));
    }
    layers.push_back(each.layer);
  }
  if (layers.size() < 2) {
    translation.put_alias(node, 0, first.shape);
    return;
  }
  const int layer = translation.add(node, partitioner::Shortcut{}, layers);
  translation.put(node, 0, {.layer = layer, .shape = first.shape});
}

// An activation is the product of a value and a factor that was computed from it.
bool is_activation(Translation& translation, const onnx::NodeProto& node) {
  for (const int i : {0, 1}) {
    const Value& factor = translation.input(node, i);
    if (factor.form == Form::Factor && factor.argument == node.input(1 - i)) {
      put_activated(translation, node, 1 - i, factor.activation, 2);
      return true;
    }
  }
  return false;
}

void translate_product_of_maps(Translation& translation, const onnx::NodeProto& node) {
  if (is_activation(translation, node)) {
    return;
  }
  if (is_constant(translation, node, 0) || is_constant(translation, node, 1)) {
    translation.refuse(node, "multiplies a map by a constant, which no section does");
  }
  const Value a = translation.values(node, 0);
  const Value b = translation.values(node, 1);
  if (a.shape == b.shape && translation.map_shape(a.layer) == translation.map_shape(b.layer)) {
    const int layer = translation.add(node, partitioner::Sam{}, {a.layer, b.layer});
    translation.put(node, 0, {.layer = layer, .shape = a.shape});
    return;
  }
  for (const int i : {0, 1}) {
    const Value& factors = translation.map(node, i);
    const Value& map = translation.map(node, 1 - i);
    const MapShape& of_factors = translation.network().shape(factors.layer);
    const MapShape& of_map = translation.network().shape(map.layer);
    const bool by_channel = of_factors == MapShape{of_map.channels, 1, 1};
    if (by_channel || of_factors == MapShape{1, of_map.rows, of_map.cols}) {
      const partitioner::ScaleChannels scale{.by_place = !by_channel};
      translation.put_map(node, translation.add(node, scale, {factors.layer, map.layer}));
      return;
    }
  }
  translation.refuse(
      node,
      fmt::format("multiplies {} and {}: sections multiply maps of the same shape, or "
                  "one by a factor for each channel or each cell",
                  sides(a.shape),
                  sides(b.shape)));
}

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
      std::any_of(parts.begin(), parts.end(), [](Index part) { return part < 1; }) ||
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

// Where a cell of a larger map is taken from, as a Resize says.
Index nearest_cell(
    const std::string& mode, const std::string& rounding, Index cell, double scale, Index cells) {
  const double at = mode == "half_pixel" || mode == "pytorch_half_pixel"
                        ? (static_cast<double>(cell) + 0.5) / scale - 0.5
                        : static_cast<double>(cell) / scale;
  const double rounded = rounding == "floor"                ? std::floor(at)
                         : rounding == "ceil"               ? std::ceil(at)
                         : rounding == "round_prefer_floor" ? std::ceil(at - 0.5)
                                                            : std::floor(at + 0.5);
  return std::clamp<Index>(static_cast<Index>(rounded), 0, cells - 1);
}

std::vector<double> scales_of(Translation& translation,
                              const onnx::NodeProto& node,
                              const Value& in) {
  const bool is_old = node.op_type() == "Upsample" || translation.file().opset() < 11;
  const int place = is_old ? 1 : 2;
  if (has_input(node, 3) && !is_old) {
    const std::vector<Index> sizes = integers_of(translation.constant(node, 3, "sizes"));
    std::vector<double> scales;
    for (std::size_t i = 0; i < sizes.size() && i < in.shape.size(); ++i) {
      scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(in.shape[i]));
    }
    return scales;
  }
  if (has_input(node, place)) {
    return numbers_of<double>(translation.constant(node, place, "scales"));
  }
  const onnx::AttributeProto* scales = attribute(node, "scales");
  return scales == nullptr ? std::vector<double>{}
                           : std::vector<double>(scales->floats().begin(), scales->floats().end());
}

void translate_resize(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.map(node, 0);
  const std::vector<double> scales = scales_of(translation, node, in);
  const bool is_upsample = node.op_type() == "Upsample" || translation.file().opset() < 11;
  const std::string mode =
      is_upsample ? "asymmetric" : word(node, "coordinate_transformation_mode", "half_pixel");
  const std::string rounding =
      is_upsample ? "floor" : word(node, "nearest_mode", "round_prefer_floor");
  if (word(node, "mode", "nearest") != "nearest") {
    translation.refuse(node,
                       fmt::format("resizes by mode '{}': an [upsample] section repeats cells "
                                   "(nearest)",
                                   word(node, "mode", "nearest")));
  }
  const double scale = scales.size() == 4 ? scales[2] : 0;
  if (scales.size() != 4 || scales[0] != 1 || scales[1] != 1 || scales[3] != scale || scale < 1 ||
      scale != std::floor(scale) || scale > 1024) {
    translation.refuse(
        node,
        fmt::format("scales by {}: an [upsample] section by a whole number, the same "
                    "for rows and columns",
                    fmt::join(scales, ", ")));
  }
  const auto stride = static_cast<Index>(scale);
  const Index cells = 3 * stride;  // as all others behind these
  for (Index cell = 0; cell < cells; ++cell) {
    if (nearest_cell(mode, rounding, cell, scale, 3) != cell / stride ||
        (mode != "asymmetric" && mode != "half_pixel" && mode != "pytorch_half_pixel")) {
      translation.refuse(node,
                         fmt::format("takes cells by '{}' and '{}': an [upsample] section repeats "
                                     "each",
                                     mode,
                                     rounding));
    }
  }
  translation.put_map(node,
                      translation.add(node, partitioner::Upsample{.stride = stride}, {in.layer}));
}

std::vector<Index> without_ones(std::vector<Index> shape) {
  shape.erase(std::remove(shape.begin() + 1, shape.end(), 1), shape.end());
  return shape;
}

void translate_reshape(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  std::vector<Index> shape =
      reshaped(translation.file(), node, translation.constants(node), in.shape);
  if (in.form == Form::Map && !shape.empty() && shape[0] == in.shape[0]) {
    const Value& values = translation.values(node, 0);
    const std::vector<Index> map = translation.map_shape(values.layer);
    const Index volume = translation.network().shape(values.layer).volume();
    if (without_ones(shape) == without_ones(map) ||
        shape == std::vector<Index>{translation.images(), volume}) {
      translation.put_alias(node, 0, std::move(shape));
      return;
    }
  }
  translation.put_rearranged(node, 0, std::move(shape));
}

void translate_transpose(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  std::vector<Index> axes(in.shape.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  axes = integers(node, "perm", axes);
  std::vector<Index> shape;
  for (const Index axis : axes) {
    shape.push_back(in.shape[dimension(translation.file(), node, axis, in.shape.size())]);
  }
  if (shape.size() != in.shape.size()) {
    translation.refuse(node, "its perm has not as many numbers as there are dimensions");
  }
  if (std::is_sorted(axes.begin(), axes.end())) {
    translation.put_alias(node, 0, std::move(shape));
  } else {
    translation.put_rearranged(node, 0, std::move(shape));
  }
}

void translate_pad(Translation& translation, const onnx::NodeProto& node) {
  Value out = translation.map(node, 0);
  const std::vector<Index> pads = integers_at(node, "pads", translation.constants(node), 1);
  const double filling = has_input(node, 2)
                             ? numbers_of<double>(translation.constant(node, 2, "value")).at(0)
                             : real(node, "value", 0);
  constexpr Index kMost = Index{1} << 20U;
  if (pads.size() != 8 || pads[0] != 0 || pads[1] != 0 || pads[4] != 0 || pads[5] != 0 ||
      *std::min_element(pads.begin(), pads.end()) < 0 ||
      *std::max_element(pads.begin(), pads.end()) > kMost || filling != 0 ||
      word(node, "mode", "constant") != "constant" || has_input(node, 3)) {
    translation.refuse(node, "expected zeros around the rows and columns of a map");
  }
  out.read_once = translation.is_only_reader(node, 0);
  out.border = {pads[2], pads[3], pads[6], pads[7]};
  out.shape[2] += pads[2] + pads[6];
  out.shape[3] += pads[3] + pads[7];
  translation.put(node, 0, std::move(out));
}

void translate_identity(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  if (in.form == Form::Rearranged) {
    translation.put_rearranged(node, 0, in.shape);
  } else {
    translation.put_alias(node, 0, in.shape);
  }
}

void translate_dropout(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.values(node, 0);
  const double ratio = has_input(node, 1)
                           ? numbers_of<double>(translation.constant(node, 1, "ratio")).at(0)
                           : real(node, "ratio", 0.5);
  if (node.output_size() > 1 && translation.is_read(node.output(1))) {
    translation.refuse(node, "what is dropped is read by other nodes");
  }
  if (ratio == 0) {
    translation.put_alias(node, 0, in.shape);
    return;
  }
  const int layer = translation.add(node, partitioner::Dropout{.probability = ratio}, {in.layer});
  translation.put(node, 0, {.layer = layer, .shape = in.shape});
}

void translate_space_to_depth(Translation& translation, const onnx::NodeProto& node) {
  const partitioner::SpaceToDepth blocks{.stride = integer(node, "blocksize", 0)};
  translation.put_map(node, translation.add(node, blocks, {translation.map(node, 0).layer}));
}

constexpr OperatorRow kMapRows[] = {{"Add", translate_sum},
                                    {"Sum", translate_sum},
                                    {"Mul", translate_product_of_maps},
                                    {"Concat", translate_concatenation, true},
                                    {"Split", translate_split, true},
                                    {"Slice", translate_slice, true},
                                    {"Resize", translate_resize},
                                    {"Upsample", translate_resize},
                                    {"Reshape", translate_reshape, true},
                                    {"Flatten", translate_reshape, true},
                                    {"Squeeze", translate_reshape, true},
                                    {"Unsqueeze", translate_reshape, true},
                                    {"Transpose", translate_transpose, true},
                                    {"Pad", translate_pad},
                                    {"Identity", translate_identity, true},
                                    {"Cast", translate_identity, true},
                                    {"Dropout", translate_dropout},
                                    {"SpaceToDepth", translate_space_to_depth}};

}  // namespace

const OperatorRow* map_operator(std::string_view name) {
  const auto* found = std::find_if(
      std::begin(kMapRows), std::end(kMapRows), [&](const auto& row) { return row.name == name; });
  return found == std::end(kMapRows) ? nullptr : found;
}

}  // namespace tessera::engine
