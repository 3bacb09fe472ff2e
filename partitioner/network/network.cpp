#include "partitioner/network/network.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"
#include "partitioner/network/output_shape.h"

namespace tessera::partitioner {

namespace {

void require_inputs(const Network& network,
                    const Operation& operation,
                    const std::vector<int>& inputs) {
  const std::string kind = kind_name(operation);
  const LayerTraits& traits = layer_traits(operation);
  require(inputs.size() == traits.inputs || (traits.more_inputs && inputs.size() > traits.inputs),
          kind + " takes " + std::to_string(traits.inputs) +
              (traits.more_inputs ? " or more" : "") + " inputs, not " +
              std::to_string(inputs.size()));
  for (const int map : inputs) {
    require(map >= kImage && map < network.size(),
            kind + " at index " + std::to_string(network.size()) + " cannot read layer " +
                std::to_string(map) + ": only earlier ones");
  }
  for (const int map : inputs) {
    if (map != kImage && is_head(network.layer(map).operation)) {
      throw std::invalid_argument(
          kind + " would read the boxes of the [" + kind_name(network.layer(map).operation) +
          "] before it: a head ends its branch of the network (a [route] leads on from "
          "an earlier layer)");
    }
  }
  require(!std::holds_alternative<Crop>(operation) || network.layers.empty(),
          "crop must be the first layer: it is done while the pictures are read");
}

}  // namespace

void add_layer(Network& network, Operation operation, std::vector<int> inputs, int line) {
  require_inputs(network, operation, inputs);
  std::vector<MapShape> shapes;
  for (const int map : inputs) {
    shapes.push_back(network.shape(map));
  }
  const MapShape output = output_shape(operation, shapes);
  network.layers.push_back({operation, std::move(inputs), output, line});
}

namespace {

bool has_parameters(const Network& network, int layer) {
  return layer_parameters(network, layer).weight.channels > 0;
}

}  // namespace

void freeze(Network& network, int last) {
  require(last >= -1 && last < network.size(),
          "layer " + std::to_string(last) + " does not exist: the layers are 0 to " +
              std::to_string(network.size() - 1));
  int last_to_learn = network.size() - 1;
  while (last_to_learn >= 0 && !has_parameters(network, last_to_learn)) {
    --last_to_learn;
  }
  require(
      last < 0 || last < last_to_learn,
      "with all layers up to " + std::to_string(last) + " frozen nothing is left to learn" +
          (last_to_learn > 0 ? ": freeze layer " + std::to_string(last_to_learn - 1) + " at most"
                             : ""));
  for (int layer = 0; layer < network.size(); ++layer) {
    LayerSpec& spec = network.layers[static_cast<std::size_t>(layer)];
    spec.frozen = layer <= last;
    spec.has_backward =
        last < 0 ||
        (!spec.frozen && (has_parameters(network, layer) ||
                          std::any_of(spec.inputs.begin(), spec.inputs.end(), [&](int map) {
                            return network.takes_gradient(map);
                          })));
  }
}

int last_frozen(const Network& network) {
  int last = -1;
  while (last + 1 < network.size() && network.layer(last + 1).frozen) {
    ++last;
  }
  return last;
}

Region whole_map(const Network& network, int map, Index batch) {
  const MapShape& shape = network.shape(map);
  return {{0, batch}, {0, shape.channels}, {0, shape.rows}, {0, shape.cols}};
}

const char* kind_name(const Operation& operation) {
  return layer_traits(operation).name;
}

const char* activation_name(Activation activation) {
  switch (activation) {
    case Activation::Linear:
      return "linear";
    case Activation::Relu:
      return "relu";
    case Activation::Leaky:
      return "leaky";
    case Activation::Relu6:
      return "relu6";
    case Activation::Elu:
      return "elu";
    case Activation::Logistic:
      return "logistic";
    case Activation::Tanh:
      return "tanh";
    case Activation::Swish:
      return "swish";
    case Activation::Mish:
      return "mish";
    case Activation::Ramp:
      return "ramp";
    case Activation::HardMish:
      return "hard_mish";
    case Activation::Gelu:
      return "gelu";
    case Activation::HardSigmoid:
      return "hard_sigmoid";
    case Activation::HardSwish:
      return "hard_swish";
  }
  expects(false, "an activation is one of the enumerators");
  return "";
}

LayerParameters layer_parameters(const Network& network, int layer) {
  const LayerSpec& spec = network.layer(layer);
  if (!has_weights(spec.operation)) {
    return {};
  }
  const MapShape& in = network.shape(spec.inputs.front());
  Index row = in.volume();
  if (const auto* convolution = std::get_if<Convolution>(&spec.operation)) {
    row = in.channels / convolution->groups * convolution->size.product();
  } else if (const auto* deconvolution = std::get_if<Deconvolution>(&spec.operation)) {
    row = in.channels * deconvolution->size.product();
  }
  LayerParameters parameters;
  if (const auto* local = std::get_if<Local>(&spec.operation)) {
    const Index cells = spec.output.rows * spec.output.cols;
    parameters.weight = {local->filters, cells * in.channels * local->size * local->size};
    parameters.bias = {local->filters, cells};
    return parameters;
  }
  parameters.weight = {spec.output.channels, row};
  const ParameterShape vector{parameters.weight.channels, 1};
  parameters.bias = vector;
  if (normalizes(spec.operation)) {
    parameters.scale = vector;
    parameters.mean = vector;
    parameters.variance = vector;
  }
  return parameters;
}

Index multiply_adds(const Network& network, int layer, const Region& output) {
  const LayerParameters parameters = layer_parameters(network, layer);
  const Index filters = std::max<Index>(parameters.bias.row, 1);  // for each channel
  Index terms = parameters.weight.row / filters;
  if (const auto* upwards = std::get_if<Deconvolution>(&network.layer(layer).operation)) {
    terms = std::max<Index>(terms / upwards->stride.product(), 1);
  }
  return saturating_product(output.volume(), terms);
}

}  // namespace tessera::partitioner
