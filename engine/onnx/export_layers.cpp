#include "engine/onnx/export_layers.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/onnx/export_activation.h"
#include "engine/ops/norm/inverse_deviation.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

using partitioner::MapShape;
using partitioner::NormForm;
using partitioner::NormRule;

namespace {

constexpr std::size_t kChannelAxis = 1;

std::vector<Index> channel_vector(const std::vector<float>& values) {
  return {std::ssize(values)};
}

// Makes batch normalisation part of weight and bias.
void fold(const NormRule& rule, LayerWeights& layer) {
  const std::size_t row = layer.weight.size() / layer.bias.size();
  for (std::size_t k = 0; k < layer.bias.size(); ++k) {
    const double factor = double{layer.scale[k]} * inverse_deviation(rule, layer.variance[k]);
    for (std::size_t i = k * row; i < (k + 1) * row; ++i) {
      layer.weight[i] = static_cast<float>(double{layer.weight[i]} * factor);
    }
    layer.bias[k] = static_cast<float>(double{layer.bias[k]} - double{layer.mean[k]} * factor);
  }
}

// (K, C, ...) as (C, K, ...).
std::vector<float> turned(const std::vector<float>& weight, Index channels, Index filters) {
  const Index cells = std::ssize(weight) / (channels * filters);
  std::vector<float> result;
  for (Index c = 0; c < channels; ++c) {
    for (Index k = 0; k < filters; ++k) {
      const auto first = weight.begin() + (k * channels + c) * cells;
      result.insert(result.end(), first, first + cells);
    }
  }
  return result;
}

std::vector<Index> axes(const partitioner::PerAxis& both) {
  return {both.rows, both.cols};
}

std::vector<Index> both_sides(const partitioner::PerAxis& before, const partitioner::PerAxis& end) {
  return {before.rows, before.cols, end.rows, end.cols};
}

// OpenCV 4.6 has the same padding on both sides of a convolution, so others stand before it.
GraphValue padded(GraphBuilder& graph, const GraphValue& in, const std::vector<Index>& pads) {
  std::vector<Index> shape = in.shape;
  shape[2] += pads[0] + pads[2];
  shape[3] += pads[1] + pads[3];
  const std::vector<Index> all{0, 0, pads[0], pads[1], 0, 0, pads[2], pads[3]};
  return graph.node("Pad", {in, graph.integers("pads", all)}, std::move(shape));
}

// Of a transposed convolution: so much that the padding is the same on both sides, if there can be;
// else as little as can be.
Index output_padding(Index before, Index end, Index stride) {
  const Index more = before - end;
  return more >= 0 && more < stride ? more : std::max<Index>(-end, 0);
}

// What the epsilon of a BatchNormalization is; Darknet's form becomes one without.
float epsilon_for(const NormRule& rule, LayerWeights& layer) {
  if (rule.form == NormForm::PyTorch) {
    return static_cast<float>(rule.epsilon);
  }
  for (std::size_t k = 0; k < layer.variance.size(); ++k) {
    const double inverse = inverse_deviation(rule, layer.variance[k]);
    layer.variance[k] = static_cast<float>(1 / (inverse * inverse));
  }
  return 0;
}

// Of windows, on both sides: no more than they reach.
std::vector<Index> pool_pads(const partitioner::MaxPool& pool,
                             const MapShape& in,
                             const MapShape& out) {
  const auto after = [](const partitioner::WindowAxis& axis, Index cells, Index windows) {
    return std::max<Index>((windows - 1) * axis.stride + axis.size - axis.padding - cells, 0);
  };
  return {pool.rows().padding,
          pool.cols().padding,
          after(pool.rows(), in.rows, out.rows),
          after(pool.cols(), in.cols, out.cols)};
}

// These two in parts, where the number of images is not known: OpenCV 4.6 takes them apart itself,
// and does it by that number.
GraphValue space_to_depth(GraphBuilder& graph, const GraphValue& in, Index stride) {
  const Index images = in.shape[0];
  const Index channels = in.shape[1];
  const Index rows = in.shape[2] / stride;
  const Index cols = in.shape[3] / stride;
  const std::vector<Index> shape{images, channels * stride * stride, rows, cols};
  if (images > 0) {
    return graph.node("SpaceToDepth", {in}, shape, {{"blocksize", stride}});
  }
  const GraphValue apart = graph.reshape(in, {images, channels, rows, stride, cols, stride});
  return graph.reshape(graph.transpose(apart, {0, 3, 5, 1, 2, 4}), shape);
}

GraphValue depth_to_space(GraphBuilder& graph, const GraphValue& in, Index stride) {
  const Index images = in.shape[0];
  const Index channels = in.shape[1] / (stride * stride);
  const std::vector<Index> shape{images, channels, in.shape[2] * stride, in.shape[3] * stride};
  if (images > 0) {
    return graph.node("DepthToSpace", {in}, shape, {{"blocksize", stride}});
  }
  const GraphValue apart =
      graph.reshape(in, {images, stride, stride, channels, in.shape[2], in.shape[3]});
  return graph.reshape(graph.transpose(apart, {0, 3, 4, 1, 5, 2}), shape);
}

}  // namespace

std::optional<std::string> export_obstacle(const partitioner::Network& network, int layer) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  if (std::holds_alternative<partitioner::Local>(spec.operation)) {
    return "has weights of its own for each cell, which no layer of ONNX has: use [convolutional]";
  }
  const MapShape& out = spec.output;
  const bool joins = std::holds_alternative<partitioner::Shortcut>(spec.operation);
  if (joins && network.shape(spec.inputs[1]).rows < out.rows) {
    return "adds a smaller map to cells that lie apart, which no layer of ONNX does: bring both to "
           "one size, with [upsample]";
  }
  return std::nullopt;
}

LayerExporter::LayerExporter(const partitioner::Network& network,
                             const std::function<LayerWeights(int layer)>& weights,
                             const ExportOptions& options,
                             GraphBuilder& graph,
                             GraphValue image)
    : network_(network),
      weights_(weights),
      options_(options),
      graph_(graph),
      forms_(static_cast<std::size_t>(network.size()) + 1) {
  forms(partitioner::kImage).map = std::move(image);
}

int LayerExporter::input_of(int layer, std::size_t number) const {
  return network_.layer(layer).inputs[number];
}

std::vector<Index> LayerExporter::map_shape(int layer) const {
  const MapShape& shape = network_.shape(layer);
  return {options_.batch.value_or(0), shape.channels, shape.rows, shape.cols};
}

GraphValue LayerExporter::map(int layer) {
  Forms& value = forms(layer);
  if (!value.map) {
    value.map = graph_.reshape(*value.flat, map_shape(layer));
  }
  return *value.map;
}

GraphValue LayerExporter::flat(int layer) {
  Forms& value = forms(layer);
  if (!value.flat) {
    value.flat = graph_.node("Flatten",
                             {*value.map},
                             {options_.batch.value_or(0), network_.shape(layer).volume()},
                             {{"axis", Index{1}}});
  }
  return *value.flat;
}

void LayerExporter::add(int layer) {
  const partitioner::Operation& operation = network_.layer(layer).operation;
  graph_.begin(fmt::format("layers.{}", layer));
  if (layer_traits(operation).passes_input_on ||
      std::holds_alternative<partitioner::Crop>(operation)) {  // whoever makes inputs cuts it out
    forms(layer) = forms(input_of(layer));
    return;
  }
  std::visit(
      [&](const auto& kind) {
        if constexpr (requires { value_of(kind, layer); }) {
          GraphValue value = value_of(kind, layer);
          (value.shape.size() == 2 ? forms(layer).flat : forms(layer).map) = std::move(value);
        } else {
          expects(false, "the layer can be exported");
        }
      },
      operation);
}

// Weights of a convolution come to `product` as (K, C / groups, FH, FW), of a transposed one as (C,
// K, FH, FW), of a connected layer as (K, C); each has a bias, or batch normalisation behind it.
template <class Product>
GraphValue LayerExporter::normalized(int layer,
                                     bool batch_normalize,
                                     std::vector<Index> weight_shape,
                                     Product product) {
  LayerWeights weights = weights_(layer);
  const bool keeps_norm = batch_normalize && options_.keep_batch_norm;
  if (batch_normalize && !keeps_norm) {
    fold(options_.norm, weights);
  }
  if (std::holds_alternative<partitioner::Deconvolution>(network_.layer(layer).operation)) {
    weights.weight = turned(weights.weight, weight_shape[0], weight_shape[1]);
  }
  std::vector<GraphValue> parameters{
      graph_.constant("weight", std::move(weight_shape), weights.weight)};
  const auto vector = [&](const char* name, const std::vector<float>& values) {
    return graph_.constant(name, channel_vector(values), values);
  };
  if (!keeps_norm) {
    parameters.push_back(vector("bias", weights.bias));
    return product(parameters);
  }
  const float epsilon = epsilon_for(options_.norm, weights);
  const GraphValue in = product(parameters);
  return graph_.node("BatchNormalization",
                     {in,
                      vector("bn.scale", weights.scale),
                      vector("bias", weights.bias),
                      vector("bn.mean", weights.mean),
                      vector("bn.variance", weights.variance)},
                     in.shape,
                     {{"epsilon", epsilon}});
}

GraphValue LayerExporter::value_of(const partitioner::Convolution& convolution, int layer) {
  GraphValue in = map(input_of(layer));
  std::vector<Index> pads = both_sides(convolution.padding, convolution.padding_end());
  if (convolution.more_padding != 0) {
    in = padded(graph_, in, std::exchange(pads, {0, 0, 0, 0}));
  }
  const auto product = [&](const std::vector<GraphValue>& parameters) {
    std::vector<GraphValue> inputs{in};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return graph_.node("Conv",
                       inputs,
                       map_shape(layer),
                       {{"kernel_shape", axes(convolution.size)},
                        {"strides", axes(convolution.stride)},
                        {"pads", pads},
                        {"dilations", axes(convolution.dilation)},
                        {"group", convolution.groups}});
  };
  const GraphValue pre_activations = normalized(layer,
                                                convolution.batch_normalize,
                                                {convolution.filters,
                                                 in.shape[kChannelAxis] / convolution.groups,
                                                 convolution.size.rows,
                                                 convolution.size.cols},
                                                product);
  return activated(graph_, convolution.activation, pre_activations);
}

GraphValue LayerExporter::value_of(const partitioner::Deconvolution& deconvolution, int layer) {
  const GraphValue in = map(input_of(layer));
  const partitioner::PerAxis before = deconvolution.padding;
  const partitioner::PerAxis end = deconvolution.padding_end();
  const partitioner::PerAxis added{
      output_padding(before.rows, end.rows, deconvolution.stride.rows),
      output_padding(before.cols, end.cols, deconvolution.stride.cols)};
  const auto product = [&](const std::vector<GraphValue>& parameters) {
    std::vector<GraphValue> inputs{in};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return graph_.node(
        "ConvTranspose",
        inputs,
        map_shape(layer),
        {{"kernel_shape", axes(deconvolution.size)},
         {"strides", axes(deconvolution.stride)},
         {"pads", both_sides(before, {end.rows + added.rows, end.cols + added.cols})},
         {"output_padding", axes(added)}});
  };
  const GraphValue pre_activations = normalized(layer,
                                                deconvolution.batch_normalize,
                                                {in.shape[kChannelAxis],
                                                 deconvolution.filters,
                                                 deconvolution.size.rows,
                                                 deconvolution.size.cols},
                                                product);
  return activated(graph_, deconvolution.activation, pre_activations);
}

GraphValue LayerExporter::value_of(const partitioner::Connected& connected, int layer) {
  const GraphValue in = flat(input_of(layer));
  const auto product = [&](const std::vector<GraphValue>& parameters) {
    std::vector<GraphValue> inputs{in};
    inputs.insert(inputs.end(), parameters.begin(), parameters.end());
    return graph_.node("Gemm", inputs, {in.shape[0], connected.outputs}, {{"transB", Index{1}}});
  };
  const GraphValue pre_activations =
      normalized(layer, connected.batch_normalize, {connected.outputs, in.shape[1]}, product);
  return activated(graph_, connected.activation, pre_activations);
}

GraphValue LayerExporter::value_of(const partitioner::MaxPool& pool, int layer) {
  return graph_.node(
      "MaxPool",
      {map(input_of(layer))},
      map_shape(layer),
      {{"kernel_shape", std::vector<Index>{pool.size, pool.size}},
       {"strides", std::vector<Index>{pool.stride.rows, pool.stride.cols}},
       {"pads", pool_pads(pool, network_.shape(input_of(layer)), network_.shape(layer))}});
}

// The channels k, k + outputs, ... become a column of a map, which is pooled. Where the last are
// less than `outputs`, the first channels are there twice.
GraphValue LayerExporter::value_of(const partitioner::ChannelPool& pool, int layer) {
  GraphValue in = map(input_of(layer));
  const Index channels = in.shape[kChannelAxis];
  const Index together = (channels + pool.outputs - 1) / pool.outputs;
  if (together * pool.outputs > channels) {
    const Index present = channels - (together - 1) * pool.outputs;
    in = graph_.concat({in, graph_.slice(in, kChannelAxis, {present, pool.outputs})}, kChannelAxis);
  }
  const Index images = in.shape[0];
  const Index values = network_.shape(layer).volume();
  const GraphValue pooled = graph_.node("MaxPool",
                                        {graph_.reshape(in, {images, 1, together, values})},
                                        {images, 1, 1, values},
                                        {{"kernel_shape", std::vector<Index>{together, 1}}});
  return graph_.reshape(pooled, map_shape(layer));
}

GraphValue LayerExporter::value_of(const partitioner::AvgPool& /*pool*/, int layer) {
  return graph_.node("GlobalAveragePool", {map(input_of(layer))}, map_shape(layer));
}

GraphValue LayerExporter::logits(int layer) {
  const auto& softmax = std::get<partitioner::Softmax>(network_.layer(layer).operation);
  graph_.begin(fmt::format("layers.{}", layer));
  const GraphValue in = softmax.spatial ? map(input_of(layer)) : flat(input_of(layer));
  return softmax.temperature == 1 ? in : graph_.binary("Mul", in, 1 / softmax.temperature);
}

GraphValue LayerExporter::value_of(const partitioner::Softmax& softmax, int layer) {
  const GraphValue in = logits(layer);
  if (softmax.groups == 1) {
    return graph_.softmax(in, kChannelAxis);
  }
  const Index images = in.shape[0];
  const GraphValue runs =
      graph_.reshape(in, {images, softmax.groups, in.shape[1] / softmax.groups});
  return graph_.reshape(graph_.softmax(runs, 2), in.shape);
}

// A source as it is added, the first `channels` of it.
GraphValue LayerExporter::shortcut_part(int layer, Index channels) {
  const int source = network_.layer(layer).inputs[1];
  const Index every = network_.shape(source).rows / network_.shape(layer).rows;
  GraphValue part = graph_.slice(map(source), kChannelAxis, {0, channels});
  for (std::size_t axis = 2; axis < part.shape.size(); ++axis) {
    part = graph_.slice(part, axis, {0, part.shape[axis]}, every);
  }
  return part;
}

GraphValue LayerExporter::value_of(const partitioner::Shortcut& shortcut, int layer) {
  const std::vector<int>& inputs = network_.layer(layer).inputs;
  const auto times = [&](double factor, const GraphValue& value) {
    return factor == 1 ? value : graph_.binary("Mul", value, factor);
  };
  const GraphValue target = map(inputs[0]);
  const Index channels = target.shape[kChannelAxis];
  const Index shared = std::min(channels, network_.shape(inputs[1]).channels);
  GraphValue sum = times(shortcut.alpha, graph_.slice(target, kChannelAxis, {0, shared}));
  sum = graph_.binary("Add", sum, times(shortcut.beta, shortcut_part(layer, shared)));
  for (std::size_t source = 2; source < inputs.size(); ++source) {
    sum = graph_.binary("Add", sum, times(shortcut.beta, map(inputs[source])));
  }
  if (shared < channels) {
    sum =
        graph_.concat({sum, graph_.slice(target, kChannelAxis, {shared, channels})}, kChannelAxis);
  }
  return activated(graph_, shortcut.activation, sum);
}

GraphValue LayerExporter::value_of(const partitioner::Sam& sam, int layer) {
  return activated(
      graph_, sam.activation, graph_.binary("Mul", map(input_of(layer)), map(input_of(layer, 1))));
}

GraphValue LayerExporter::value_of(const partitioner::ScaleChannels& scale, int layer) {
  return activated(graph_,
                   scale.activation,
                   graph_.binary("Mul", map(input_of(layer, 1)), map(input_of(layer))));
}

GraphValue LayerExporter::value_of(const partitioner::Route& route, int layer) {
  std::vector<GraphValue> parts;
  for (const int input : network_.layer(layer).inputs) {
    const Index channels = network_.shape(input).channels / route.groups;
    parts.push_back(graph_.slice(
        map(input), kChannelAxis, {route.group * channels, (route.group + 1) * channels}));
  }
  return graph_.concat(parts, kChannelAxis);
}

GraphValue LayerExporter::value_of(const partitioner::Upsample& upsample, int layer) {
  const auto factor = static_cast<float>(upsample.stride);
  const std::vector<float> scales{1, 1, factor, factor};
  const GraphValue none{"", {}};
  std::vector<GraphAttribute> attributes{
      {"mode", std::string(upsample.bilinear ? "linear" : "nearest")},
      {"coordinate_transformation_mode",
       std::string(upsample.bilinear ? "half_pixel" : "asymmetric")}};
  if (!upsample.bilinear) {
    attributes.push_back({"nearest_mode", std::string("floor")});
  }
  const GraphValue larger =
      graph_.node("Resize",
                  {map(input_of(layer)), none, graph_.constant("scales", {4}, scales)},
                  map_shape(layer),
                  attributes);
  return upsample.scale == 1 ? larger : graph_.binary("Mul", larger, upsample.scale);
}

// The flat order of Darknet is that of maps with a stride^2-th of the channels.
GraphValue LayerExporter::value_of(const partitioner::Reorg& reorg, int layer) {
  const GraphValue in = map(input_of(layer));
  const Index stride = reorg.stride;
  if (reorg.reverse) {
    return depth_to_space(graph_, in, stride);
  }
  const Index channels = in.shape[1] / (stride * stride);
  const GraphValue apart =
      graph_.reshape(in, {in.shape[0], channels, in.shape[2] * stride, in.shape[3] * stride});
  return graph_.reshape(space_to_depth(graph_, apart, stride), map_shape(layer));
}

GraphValue LayerExporter::value_of(const partitioner::SpaceToDepth& space_to_depth, int layer) {
  return engine::space_to_depth(graph_, map(input_of(layer)), space_to_depth.stride);
}

GraphValue LayerExporter::value_of(const partitioner::ChannelShuffle& shuffle, int layer) {
  const GraphValue in = map(input_of(layer));
  const std::vector<Index>& shape = in.shape;
  const GraphValue apart =
      graph_.reshape(in, {shape[0], shuffle.groups, shape[1] / shuffle.groups, shape[2], shape[3]});
  return graph_.reshape(graph_.transpose(apart, {0, 2, 1, 3, 4}), map_shape(layer));
}

}  // namespace tessera::engine
