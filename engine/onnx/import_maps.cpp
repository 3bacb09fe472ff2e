// Operators that combine maps, take parts of them, or only see them in another shape.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "engine/onnx/import_activations.h"
#include "partitioner/network/layer_traits.h"

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

// Of a constant, one number for all channels or one for each: those of a depthwise convolution of
// 1x1, which do not learn. `factor` makes them of the constant's.
void multiply_channels(Translation& translation,
                       const onnx::NodeProto& node,
                       int from,
                       double (*factor)(double)) {
  const Value in = translation.values(node, from);
  const Constant& constant = translation.constant(node, 1 - from, "constant");
  const Index channels = translation.network().shape(in.layer).channels;
  const std::size_t behind = in.shape.size() == 4 ? 3 : 1;  // dimensions from channels on
  const bool by_channel = volume_of(constant.shape) == channels &&
                          constant.shape.size() >= behind &&
                          constant.shape[constant.shape.size() - behind] == channels;
  const bool sees_channels = in.shape.size() > 1 && in.shape[1] == channels;
  if (volume_of(constant.shape) != 1 && !(by_channel && sees_channels)) {
    translation.refuse(node,
                       fmt::format("multiplies a map of {} channels by {} numbers: expected one "
                                   "number, or one for each channel",
                                   channels,
                                   sides(constant.shape)));
  }
  std::vector<double> factors = numbers_of<double>(constant);
  std::transform(factors.begin(), factors.end(), factors.begin(), factor);
  const partitioner::Convolution scale{
      .filters = channels, .groups = channels, .activation = partitioner::Activation::Linear};
  const int layer = translation.add(node, scale, {in.layer});
  translation.parameters(layer) = {
      .node = node.name(), .weight = {.shape = {channels, 1, 1, 1}, .numbers = std::move(factors)}};
  translation.hold(layer);
  translation.put(node, 0, {.layer = layer, .shape = in.shape});
}

void translate_quotient(Translation& translation, const onnx::NodeProto& node) {
  multiply_channels(translation, node, 0, [](double divisor) { return 1 / divisor; });
}

// An activation is the product of a value and a factor that was computed from it.
bool is_activation(Translation& translation, const onnx::NodeProto& node) {
  for (const int i : {0, 1}) {
    const Value& factor = translation.input(node, i);
    if (factor.form == Form::Factor && factor.argument == node.input(1 - i)) {
      put_activated(translation,
                    node,
                    translation.values(node, 1 - i),
                    node.input(1 - i),
                    factor.activation,
                    2);
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
    multiply_channels(
        translation, node, is_constant(translation, node, 0) ? 1 : 0, [](double number) {
          return number;
        });
    return;
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
  const bool linear = word(node, "mode", "nearest") == "linear";
  if (!linear && word(node, "mode", "nearest") != "nearest") {
    translation.refuse(node,
                       fmt::format("resizes by mode '{}': an [upsample] section repeats cells "
                                   "(nearest) or takes values between them (linear)",
                                   word(node, "mode", "nearest")));
  }
  if (linear && mode != "half_pixel" && mode != "pytorch_half_pixel") {
    translation.refuse(node,
                       fmt::format("takes values between cells by '{}': an [upsample] section by "
                                   "half_pixel (align_corners=False)",
                                   mode));
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
  for (Index cell = 0; cell < cells && !linear; ++cell) {
    if (nearest_cell(mode, rounding, cell, scale, 3) != cell / stride ||
        (mode != "asymmetric" && mode != "half_pixel" && mode != "pytorch_half_pixel")) {
      translation.refuse(node,
                         fmt::format("takes cells by '{}' and '{}': an [upsample] section repeats "
                                     "each",
                                     mode,
                                     rounding));
    }
  }
  const partitioner::Upsample upsample{.stride = stride, .bilinear = linear};
  translation.put_map(node, translation.add(node, upsample, {in.layer}));
}

std::vector<Index> without_ones(std::vector<Index> shape) {
  shape.erase(std::remove(shape.begin() + 1, shape.end(), 1), shape.end());
  return shape;
}

// Of a map in this shape, if that is (images, groups, C / groups, cells ...); else 0.
Index channel_groups(const Translation& translation,
                     const Value& map,
                     const std::vector<Index>& shape) {
  const std::vector<Index> own = translation.map_shape(map.layer);
  return map.shape == own && shape.size() > 3 && shape[0] == own[0] && shape[1] > 0 &&
                 own[1] % shape[1] == 0 && own[1] / shape[1] == shape[2]
             ? shape[1]
             : 0;
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
  if (in.is_shuffled && shape == translation.map_shape(in.layers.front())) {
    const partitioner::ChannelShuffle shuffle{.groups = in.groups};
    const int layer = translation.add(node, shuffle, in.layers);
    translation.forget_rearranging(node);
    translation.put_map(node, layer);
    return;
  }
  const Index groups = in.form == Form::Map ? channel_groups(translation, in, shape) : 0;
  translation.put_rearranged(node, 0, std::move(shape)).groups = groups;
}

void translate_transpose(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  std::vector<Index> axes(in.shape.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  axes = integers(node, "perm", axes);
  std::vector<Index> shape;
  std::vector<std::size_t> moved;  // of more than one place
  for (const Index axis : axes) {
    const std::size_t from = dimension(translation.file(), node, axis, in.shape.size());
    shape.push_back(in.shape[from]);
    if (from == 0 || in.shape[from] != 1) {
      moved.push_back(from);
    }
  }
  if (shape.size() != in.shape.size()) {
    translation.refuse(node, "its perm has not as many numbers as there are dimensions");
  }
  if (std::is_sorted(moved.begin(), moved.end())) {
    translation.put_alias(node, 0, std::move(shape));
    return;
  }
  Value& out = translation.put_rearranged(node, 0, std::move(shape));
  if (in.groups > 0 && !in.is_shuffled) {
    std::swap(moved[1], moved[2]);
    out.groups = in.groups;
    out.is_shuffled = std::is_sorted(moved.begin(), moved.end());
  }
}

void translate_pad(Translation& translation, const onnx::NodeProto& node) {
  Value out = translation.map(node, 0);
  const std::vector<Index> pads = integers_at(node, "pads", translation.constants(node), 1);
  const double filling =
      has_input(node, 2) ? translation.number(node, 2, "value") : real(node, "value", 0);
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
  const double ratio =
      has_input(node, 1) ? translation.number(node, 1, "ratio") : real(node, "ratio", 0.5);
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
                                    {"Div", translate_quotient},
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

OperatorRows map_operators() {
  return kMapRows;
}

}  // namespace tessera::engine
