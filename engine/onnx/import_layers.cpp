// Operators that become layers with parameters, and pools.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/onnx/import_translation.h"

namespace tessera::engine {

namespace {

using partitioner::Convolution;
using partitioner::MapShape;

struct Window {
  partitioner::PerAxis size = 1;
  partitioner::PerAxis stride = 1;
  partitioner::PerAxis dilation = 1;
  Border border = {};
};

partitioner::PerAxis pair_of(Translation& translation,
                             const onnx::NodeProto& node,
                             const char* name,
                             Index otherwise) {
  const std::vector<Index> both = integers(node, name, {otherwise, otherwise});
  if (both.size() != 2) {
    translation.refuse(node, fmt::format("its {} are {} numbers, expected 2", name, both.size()));
  }
  for (const Index number : both) {
    if (number < 1 || number > (Index{1} << 31U)) {
      translation.refuse(node, fmt::format("its {} are {}", name, fmt::join(both, " and ")));
    }
  }
  return {both[0], both[1]};
}

// So that a window stands at every `stride` cells.
void pad_to_same(const MapShape& map, bool upper, Window& window) {
  const auto total = [](Index cells, Index size, Index stride, Index dilation) {
    const Index windows = (cells + stride - 1) / stride;
    return std::max<Index>(0, (windows - 1) * stride + (size - 1) * dilation + 1 - cells);
  };
  const Index rows = total(map.rows, window.size.rows, window.stride.rows, window.dilation.rows);
  const Index cols = total(map.cols, window.size.cols, window.stride.cols, window.dilation.cols);
  window.border = {(rows + (upper ? 0 : 1)) / 2, (cols + (upper ? 0 : 1)) / 2, 0, 0};
  window.border.bottom = rows - window.border.top;
  window.border.right = cols - window.border.left;
}

Window window_of(Translation& translation,
                 const onnx::NodeProto& node,
                 const MapShape& map,
                 const partitioner::PerAxis& size) {
  Window window{.size = size,
                .stride = pair_of(translation, node, "strides", 1),
                .dilation = pair_of(translation, node, "dilations", 1)};
  const std::string automatic = word(node, "auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    pad_to_same(map, automatic == "SAME_UPPER", window);
    return window;
  }
  const std::vector<Index> pads = integers(node, "pads", {0, 0, 0, 0});
  if (pads.size() != 4 || *std::min_element(pads.begin(), pads.end()) < 0 ||
      *std::max_element(pads.begin(), pads.end()) > (Index{1} << 31U)) {
    translation.refuse(node, fmt::format("its pads are {}", fmt::join(pads, ", ")));
  }
  window.border = {pads[0], pads[1], pads[2], pads[3]};
  return window;
}

Convolution convolution_of(Translation& translation,
                           const onnx::NodeProto& node,
                           const Window& window) {
  const Border& border = window.border;
  Convolution convolution{.size = window.size,
                          .stride = window.stride,
                          .padding = {border.top, border.left},
                          .activation = partitioner::Activation::Linear,
                          .more_padding = {border.bottom - border.top, border.right - border.left}};
  if (window.dilation == partitioner::PerAxis(1) || window.size == partitioner::PerAxis(1)) {
    return convolution;
  }
  convolution.dilation = window.dilation.rows;
  if (!window.dilation.is_square() || convolution.more_padding != 0 || window.size.rows % 2 == 0 ||
      window.size.cols % 2 == 0 ||
      2 * convolution.padding.rows != (window.size.rows - 1) * convolution.dilation ||
      2 * convolution.padding.cols != (window.size.cols - 1) * convolution.dilation) {
    translation.refuse(node,
                       "a [convolutional] section with a dilation has the same one for rows and "
                       "columns, filters of an odd size, and a padding that keeps the map's size");
  }
  return convolution;
}

// The parameters of a layer, its bias among them, whose map is what the node computes.
void put_weights(Translation& translation,
                 const onnx::NodeProto& node,
                 int layer,
                 ImportedParameters parameters) {
  const Index filters = parameters.weight.shape[0];
  if (has_input(node, 2)) {
    parameters.bias = translation.constant(node, 2, "bias");
    if (volume_of(parameters.bias->shape) != filters) {
      translation.refuse(
          node,
          fmt::format("has a bias of {} for {} filters", sides(parameters.bias->shape), filters));
    }
  }
  translation.parameters(layer) = std::move(parameters);
  translation.put_map(node, layer);
}

void translate_convolution(Translation& translation, const onnx::NodeProto& node) {
  Value in = translation.input(node, 0);
  if (in.form != Value::Form::Map) {
    in = translation.map(node, 0);  // says what it is
  }
  if (in.shape != translation.map_shape(in.layer) && in.border == Border{}) {
    in = translation.map(node, 0);
  }
  const Constant& weight = translation.constant(node, 1, "weight");
  if (weight.shape.size() != 4) {
    translation.refuse(node,
                       fmt::format("its weights are {}: only convolutions over rows and columns",
                                   sides(weight.shape)));
  }
  const std::vector<Index> size = {weight.shape[2], weight.shape[3]};
  if (integers(node, "kernel_shape", size) != size) {
    translation.refuse(node, "its kernel_shape is not that of its weights");
  }
  const MapShape& map = translation.network().shape(in.layer);
  Window window = window_of(translation, node, map, {size[0], size[1]});
  window.border.top += in.border.top;
  window.border.left += in.border.left;
  window.border.bottom += in.border.bottom;
  window.border.right += in.border.right;
  Convolution convolution = convolution_of(translation, node, window);
  convolution.filters = weight.shape[0];
  convolution.groups = integer(node, "group", 1);
  if (convolution.groups < 1 || map.channels % convolution.groups != 0 ||
      map.channels / convolution.groups != weight.shape[1]) {
    translation.refuse(node,
                       fmt::format("its weights are {} in {} groups, its input has {} channels",
                                   sides(weight.shape),
                                   convolution.groups,
                                   map.channels));
  }
  if (!in.channel_order.empty() && convolution.groups != 1) {
    translation.refuse(node, "reads slices of a map (Focus) in groups");
  }
  const int layer = translation.add(node, convolution, {in.layer});
  put_weights(translation,
              node,
              layer,
              {.node = node.name(), .weight = weight, .channel_order = in.channel_order});
}

void translate_transposed_convolution(Translation& translation, const onnx::NodeProto& node) {
  const Value& in = translation.map(node, 0);
  Constant weight = translation.constant(node, 1, "weight");
  if (weight.shape.size() != 4) {
    translation.refuse(node,
                       fmt::format("its weights are {}: only convolutions over rows and columns",
                                   sides(weight.shape)));
  }
  turn(weight);
  const MapShape& map = translation.network().shape(in.layer);
  const std::vector<Index> size = {weight.shape[2], weight.shape[3]};
  const std::vector<Index> more = integers(node, "output_padding", {0, 0});
  const std::string automatic = word(node, "auto_pad", "NOTSET");
  if (more.size() != 2 || std::min(more[0], more[1]) < 0 ||
      std::max(more[0], more[1]) > (Index{1} << 31U)) {
    translation.refuse(node, fmt::format("its output_padding is {}", fmt::join(more, ", ")));
  }
  if (integers(node, "kernel_shape", size) != size || weight.shape[1] != map.channels) {
    translation.refuse(
        node,
        fmt::format("its weights are {} (filters turned to the front), its input has "
                    "{} channels",
                    sides(weight.shape),
                    map.channels));
  }
  const Window window = window_of(translation, node, map, {size[0], size[1]});
  if (integer(node, "group", 1) != 1 || window.dilation != partitioner::PerAxis(1) ||
      (automatic != "NOTSET" && automatic != "VALID") ||
      attribute(node, "output_shape") != nullptr) {
    translation.refuse(node,
                       "a [deconvolutional] section has neither groups nor a dilation, and says by "
                       "its padding how large the map is");
  }
  const Border& border = window.border;
  const partitioner::Deconvolution deconvolution{
      .filters = weight.shape[0],
      .size = window.size,
      .stride = window.stride,
      .padding = {border.top, border.left},
      .activation = partitioner::Activation::Linear,
      .more_padding = {border.bottom - more[0] - border.top, border.right - more[1] - border.left}};
  const int layer = translation.add(node, deconvolution, {in.layer});
  put_weights(translation, node, layer, {.node = node.name(), .weight = std::move(weight)});
}

// A normalisation that no layer before it can do: it is a convolution of 1x1 that passes each
// channel on.
int own_normalization(Translation& translation, const onnx::NodeProto& node, const Value& in) {
  const Index channels = translation.network().shape(in.layer).channels;
  const Convolution pass_on{
      .filters = channels, .groups = channels, .activation = partitioner::Activation::Linear};
  const int layer = translation.add(node, pass_on, {in.layer});
  translation.parameters(layer) = {.node = node.name(),
                                   .weight = {.shape = {channels, 1, 1, 1}, .numbers = {1}}};
  return layer;
}

// Means of windows: a depthwise convolution whose weights do not learn.
void translate_window_means(Translation& translation,
                            const onnx::NodeProto& node,
                            const Value& in,
                            const Window& window) {
  if (integer(node, "ceil_mode", 0) != 0 || window.dilation != partitioner::PerAxis(1) ||
      (!(window.border == Border{}) && integer(node, "count_include_pad", 0) == 0)) {
    translation.refuse(node,
                       "takes means of fewer cells at the borders of a map (ceil_mode, or "
                       "padding without count_include_pad), which no section does");
  }
  const Index channels = translation.network().shape(in.layer).channels;
  Convolution means = convolution_of(translation, node, window);
  means.filters = channels;
  means.groups = channels;
  const int layer = translation.add(node, means, {in.layer});
  const double cells = static_cast<double>(window.size.rows * window.size.cols);
  translation.parameters(layer) = {
      .node = node.name(),
      .weight = {.shape = {channels, 1, window.size.rows, window.size.cols},
                 .numbers = {1 / cells}}};
  translation.hold(layer);
  translation.put_map(node, layer);
}

bool normalize(partitioner::Operation& operation) {
  const auto takes = [](auto& layer) {
    if (layer.batch_normalize || layer.activation != partitioner::Activation::Linear) {
      return false;
    }
    return layer.batch_normalize = true;
  };
  if (auto* convolution = std::get_if<Convolution>(&operation)) {
    return takes(*convolution);
  }
  if (auto* deconvolution = std::get_if<partitioner::Deconvolution>(&operation)) {
    return takes(*deconvolution);
  }
  auto* connected = std::get_if<partitioner::Connected>(&operation);
  return connected != nullptr && takes(*connected);
}

void translate_normalization(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.values(node, 0);
  const MapShape map = translation.network().shape(in.layer);
  if (in.shape.size() < 2 || in.shape[1] != map.channels || integer(node, "spatial", 1) != 1) {
    translation.refuse(node, "normalises otherwise than by channels");
  }
  // 0.9f is meant to be 0.9.
  const double kept = std::stod(
      fmt::format("{}", static_cast<float>(real(node, "momentum", static_cast<double>(0.9F)))));
  ImportedNorm norm{.scale = translation.constant(node, 1, "scale"),
                    .shift = translation.constant(node, 2, "bias"),
                    .mean = translation.constant(node, 3, "mean"),
                    .variance = translation.constant(node, 4, "variance"),
                    .epsilon = real(node, "epsilon", static_cast<double>(1e-5F)),
                    .rate = 1 - kept};
  for (const Constant* each : {&norm.scale, &norm.shift, &norm.mean, &norm.variance}) {
    if (each->shape != std::vector<Index>{map.channels}) {
      translation.refuse(
          node,
          fmt::format("has parameters of {} for {} channels", sides(each->shape), map.channels));
    }
  }
  if (!(norm.epsilon > 0) || !(norm.rate >= 0 && norm.rate <= 1)) {
    translation.refuse(
        node,
        fmt::format("has an epsilon of {} and a momentum of {}: expected one above 0 "
                    "and one from 0 to 1",
                    norm.epsilon,
                    kept));
  }
  for (int i = 1; i < node.output_size(); ++i) {
    if (translation.is_read(node.output(i))) {
      translation.refuse(node, "its statistics are read by other nodes");
    }
  }
  int layer = in.layer;
  if (layer == partitioner::kImage || !translation.is_only_reader(node, 0) ||
      translation.network().layer(layer).learning.rate_factor == 0 ||
      !normalize(translation.operation(layer))) {
    layer = own_normalization(translation, node, in);
    (void)normalize(translation.operation(layer));
  }
  translation.parameters(layer).norm = std::move(norm);
  translation.put(node, 0, {.layer = layer, .shape = in.shape});
}

Index windows_along(Index cells, const Border& border, bool rows, const Window& window, bool ceil) {
  const Index before = rows ? border.top : border.left;
  const Index after = rows ? border.bottom : border.right;
  const Index size = rows ? window.size.rows : window.size.cols;
  const Index stride = rows ? window.stride.rows : window.stride.cols;
  const Index room = cells + before + after - size;
  if (room < 0) {
    return 0;
  }
  const Index count = (room + (ceil ? stride - 1 : 0)) / stride + 1;
  // A window that would begin behind the map is none.
  return ceil && (count - 1) * stride >= cells + before ? count - 1 : count;
}

void translate_max_pool(Translation& translation, const onnx::NodeProto& node) {
  const Value& in = translation.map(node, 0);
  const MapShape& map = translation.network().shape(in.layer);
  const Window window =
      window_of(translation, node, map, pair_of(translation, node, "kernel_shape", 1));
  const Border& border = window.border;
  if (!window.size.is_square() || window.dilation != partitioner::PerAxis(1)) {
    translation.refuse(node, "a [maxpool] section has square windows without dilation");
  }
  if (node.output_size() > 1 && translation.is_read(node.output(1))) {
    translation.refuse(node, "which cells were the largest is read by other nodes");
  }
  const bool ceil = integer(node, "ceil_mode", 0) != 0;
  // `padding` is that of both sides together, its lesser half above and on the left.
  const auto padding = [&](bool rows) {
    const Index before = rows ? border.top : border.left;
    for (const Index more : {0, 1}) {
      const Border has{before, before, before + more, before + more};
      if (windows_along(rows ? map.rows : map.cols, has, rows, window, false) ==
          windows_along(rows ? map.rows : map.cols, border, rows, window, ceil)) {
        return 2 * before + more;
      }
    }
    return Index{-1};
  };
  const partitioner::MaxPool pool{.size = window.size.rows,
                                  .stride = window.stride,
                                  .padding = {padding(true), padding(false)}};
  if (pool.padding.rows >= 0 && pool.padding.cols >= 0) {
    translation.put_map(node, translation.add(node, pool, {in.layer}));
    return;
  }
  translation.refuse(
      node,
      fmt::format("is padded by {} cells above and {} below, {} on the left and {} "
                  "on the right{}: a [maxpool] section has the same on both sides, or "
                  "one more below and on the right",
                  border.top,
                  border.bottom,
                  border.left,
                  border.right,
                  ceil ? ", and more where windows reach beyond (ceil_mode)" : ""));
}

void translate_mean(Translation& translation, const onnx::NodeProto& node) {
  const Value& in = translation.map(node, 0);
  bool keeps = true;
  if (node.op_type() == "ReduceMean") {
    std::vector<Index> axes = integers_at(node, "axes", translation.constants(node), 1);
    for (Index& axis : axes) {
      axis = static_cast<Index>(dimension(translation.file(), node, axis, in.shape.size()));
    }
    std::sort(axes.begin(), axes.end());
    if (axes != std::vector<Index>{2, 3}) {
      translation.refuse(node, "takes means otherwise than over all rows and columns");
    }
    keeps = integer(node, "keepdims", 1) != 0;
  }
  if (node.op_type() == "AveragePool") {
    const MapShape& map = translation.network().shape(in.layer);
    const partitioner::PerAxis size = pair_of(translation, node, "kernel_shape", 1);
    const Window window = window_of(translation, node, map, size);
    const bool is_bare = window.border == Border{} && integer(node, "ceil_mode", 0) == 0;
    if (is_bare && size == partitioner::PerAxis(1) && window.stride == partitioner::PerAxis(1)) {
      translation.put_alias(node, 0, in.shape);  // adaptive pooling of a map of that very size
      return;
    }
    if (size != partitioner::PerAxis(map.rows, map.cols) || !(window.border == Border{})) {
      translate_window_means(translation, node, in, window);
      return;
    }
  }
  const int layer = translation.add(node, partitioner::AvgPool{}, {in.layer});
  std::vector<Index> shape = translation.map_shape(layer);
  shape.resize(keeps ? 4 : 2);
  translation.put(node, 0, {.layer = layer, .shape = std::move(shape)});
}

void translate_product(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.values(node, 0);
  const bool is_gemm = node.op_type() == "Gemm";
  Constant weight = translation.constant(node, 1, "matrix");
  const Index volume = translation.network().shape(in.layer).volume();
  if (in.shape != std::vector<Index>{translation.images(), volume}) {
    translation.refuse(
        node,
        fmt::format("multiplies {}, of a map of {}: a [connected] section multiplies "
                    "all values of each image",
                    sides(in.shape),
                    sides(translation.map_shape(in.layer))));
  }
  if (integer(node, "transA", 0) != 0 || real(node, "alpha", 1) != 1 ||
      (has_input(node, 2) && real(node, "beta", 1) != 1)) {
    translation.refuse(node, "expected transA of 0, and alpha and beta of 1");
  }
  if (weight.shape.size() == 2 && (!is_gemm || integer(node, "transB", 0) == 0)) {
    std::swap(weight.shape[0], weight.shape[1]);
    weight.transposed = !weight.transposed;
  }
  if (weight.shape.size() != 2 || weight.shape[1] != volume || weight.stored == nullptr) {
    translation.refuse(node,
                       fmt::format("multiplies {} values by a matrix of {} (outputs x inputs)",
                                   volume,
                                   sides(weight.shape)));
  }
  const Index outputs = weight.shape[0];
  const int layer = translation.add(
      node,
      partitioner::Connected{.outputs = outputs, .activation = partitioner::Activation::Linear},
      {in.layer});
  translation.parameters(layer) = {.node = node.name(), .weight = std::move(weight)};
  if (is_gemm && has_input(node, 2)) {
    const Constant& bias = translation.constant(node, 2, "bias");
    if (volume_of(bias.shape) != outputs || (!bias.shape.empty() && bias.shape.back() != outputs)) {
      translation.refuse(
          node, fmt::format("has a bias of {} for {} outputs", sides(bias.shape), outputs));
    }
    translation.parameters(layer).bias = bias;
  }
  translation.put(node, 0, {.layer = layer, .shape = {translation.images(), outputs}});
}

void translate_softmax(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.values(node, 0);
  const Index usual = translation.file().opset() < 13 ? 1 : -1;
  const std::size_t axis =
      dimension(translation.file(), node, integer(node, "axis", usual), in.shape.size());
  const MapShape& map = translation.network().shape(in.layer);
  const bool flattens = translation.file().opset() < 13;  // all dimensions from the axis on
  if (axis != 1 || in.shape[0] != translation.images()) {
    translation.refuse(node, "is over another dimension than channels");
  }
  const bool spatial = !flattens && map.rows * map.cols > 1 && in.shape[1] == map.channels;
  const int layer = translation.add(node, partitioner::Softmax{.spatial = spatial}, {in.layer});
  translation.put(node, 0, {.layer = layer, .shape = in.shape});
}

constexpr OperatorRow kLayerRows[] = {{"Conv", translate_convolution},
                                      {"ConvTranspose", translate_transposed_convolution},
                                      {"BatchNormalization", translate_normalization},
                                      {"MaxPool", translate_max_pool},
                                      {"GlobalAveragePool", translate_mean},
                                      {"AveragePool", translate_mean},
                                      {"ReduceMean", translate_mean},
                                      {"Gemm", translate_product},
                                      {"MatMul", translate_product},
                                      {"Softmax", translate_softmax}};

}  // namespace

OperatorRows layer_operators() {
  return kLayerRows;
}

}  // namespace tessera::engine
