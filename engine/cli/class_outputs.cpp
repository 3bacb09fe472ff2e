#include "engine/cli/class_outputs.h"

#include <fmt/format.h>
#include <variant>

#include "engine/layers/layer.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::LayerSpec;
using partitioner::Network;

namespace {

// The convolution or connected layer that says how many channels a map has; -1 where several layers
// do. What lies between passes channels on.
int layer_of_channels(const Network& network, int map) {
  using namespace partitioner;  // NOLINT(google-build-using-namespace): the kinds of layers
  while (map != kImage) {
    const Operation& kind = network.layer(map).operation;
    if (std::holds_alternative<Convolution>(kind) || std::holds_alternative<Connected>(kind)) {
      return map;
    }
    if (std::holds_alternative<Shortcut>(kind) || std::holds_alternative<Route>(kind) ||
        std::holds_alternative<Reorg>(kind) || std::holds_alternative<SpaceToDepth>(kind)) {
      return kImage;
    }
    map = network.layer(map).inputs.front();
  }
  return kImage;
}

std::string place(const Network& network, int layer) {
  const LayerSpec& spec = network.layer(layer);
  return fmt::format("layer {} ([{}], line {})", layer, kind_name(spec.operation), spec.line);
}

std::string remedy(const Network& network, int loss, Index classes) {
  const partitioner::MapShape& shape = network.shape(loss);
  std::string text;
  if (shape.channels != classes) {
    const int layer = layer_of_channels(network, loss);
    const bool connected = layer >= 0 && std::holds_alternative<partitioner::Connected>(
                                             network.layer(layer).operation);
    text = layer < 0 ? fmt::format("make the layers before output {} channels", classes)
                     : fmt::format("set {}={} in {}",
                                   connected ? "output" : "filters",
                                   classes,
                                   place(network, layer));
  }
  if (shape.rows * shape.cols > 1) {
    text += fmt::format(
        "{}put an [avgpool] before {}", text.empty() ? "" : ", and ", place(network, loss));
  }
  return text;
}

std::string difference(const Network& network, const std::string& model, const Dataset& dataset) {
  const int loss = loss_layer(network);
  const partitioner::MapShape& shape = network.shape(loss);
  const bool one_cell = shape.rows * shape.cols == 1;
  return fmt::format(
      "has {} classes, {} gives {}{} outputs: {}",
      dataset.classes(),
      model,
      one_cell ? "" : fmt::format("{}x{}x{} = ", shape.channels, shape.rows, shape.cols),
      shape.volume(),
      remedy(network, loss, dataset.classes()));
}

bool has_spare_outputs(const Network& network, const Dataset& dataset) {
  const partitioner::MapShape& shape = network.shape(loss_layer(network));
  return shape.rows * shape.cols == 1 && shape.channels > dataset.classes();
}

}  // namespace

void expect_output_for_each_class(const Network& network,
                                  const std::string& model,
                                  const Dataset& dataset,
                                  const std::string& path) {
  const int loss = loss_layer(network);
  partitioner::expects(loss >= 0, "a network that is trained or evaluated ends in a loss");
  if (dataset.classes() != network.shape(loss).volume() && !has_spare_outputs(network, dataset)) {
    throw partitioner::InputError(path, 0, difference(network, model, dataset));
  }
}

std::optional<std::string> spare_outputs(const Network& network,
                                         const std::string& model,
                                         const Dataset& dataset) {
  if (!has_spare_outputs(network, dataset)) {
    return std::nullopt;
  }
  return difference(network, model, dataset) +
         ", or the spare outputs only learn that they are never right";
}

}  // namespace tessera::engine
