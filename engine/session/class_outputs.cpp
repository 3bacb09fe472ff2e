#include "engine/session/class_outputs.h"

#include <algorithm>
#include <fmt/format.h>
#include <variant>

#include "engine/data/inspection/data_summary.h"
#include "engine/layers/layer.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/shell_word.h"
#include "partitioner/network/channel_makers.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

using partitioner::LayerSpec;
using partitioner::Network;

namespace {

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

std::string output_difference(const Network& network,
                              int loss,
                              const std::string& model,
                              const Dataset& dataset) {
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

std::string head_difference(const Network& network,
                            int head,
                            const std::string& model,
                            const Dataset& dataset) {
  const Index before = classes_of(network, head);
  const partitioner::MapShape& shape = network.shape(head);
  const ClassLayer change =
      shape.rows * shape.cols > 1 ? class_layer(network, head, dataset.classes()) : ClassLayer{};
  return fmt::format(
      "has {} classes, {} tells {} apart: set classes={} in {}{}",
      dataset.classes(),
      model,
      before,
      dataset.classes(),
      place(network, head),
      change.layer < 0
          ? ""
          : fmt::format(" and filters={} in {}", change.channels, place(network, change.layer)));
}

bool is_head(const partitioner::Loss& loss) {
  return loss.form == partitioner::LossForm::Boxes;
}

std::string difference(const Network& network,
                       const partitioner::Loss& loss,
                       const std::string& model,
                       const Dataset& dataset,
                       const std::string& path) {
  return fmt::format("{}, or let {} do so",
                     is_head(loss) ? head_difference(network, loss.layer, model, dataset)
                                   : output_difference(network, loss.layer, model, dataset),
                     adapt_command(model, path));
}

bool has_spare_outputs(const Network& network,
                       const partitioner::Loss& loss,
                       const Dataset& dataset) {
  if (is_head(loss)) {
    return classes_of(network, loss.layer) > dataset.classes();
  }
  const partitioner::MapShape& shape = network.shape(loss.layer);
  return shape.rows * shape.cols == 1 && shape.channels > dataset.classes();
}

bool has_output_for_each(const Network& network,
                         const partitioner::Loss& loss,
                         const Dataset& dataset) {
  return dataset.classes() == classes_of(network, loss.layer) ||
         has_spare_outputs(network, loss, dataset);
}

}  // namespace

int layer_of_channels(const Network& network, int map) {
  while (map != partitioner::kImage && !has_weights(network.layer(map).operation)) {
    const LayerSpec& spec = network.layer(map);
    const int input = spec.inputs.front();
    const bool passes_on =
        spec.inputs.size() == 1 && network.shape(input).channels == spec.output.channels;
    map = passes_on ? input : partitioner::kImage;
  }
  return map;
}

ClassLayer class_layer(const Network& network, int head, Index classes) {
  const LayerSpec& spec = network.layer(head);
  const int input = spec.inputs.front();
  const partitioner::MapShape& map = network.shape(input);
  if (std::holds_alternative<partitioner::YoloxHead>(spec.operation)) {
    const auto makers = channel_makers(network, input, {partitioner::kBoxValues, map.channels});
    const Index before = classes_of(network, head);
    if (makers.size() != 1 || makers[0].channels.size() != before) {
      return {};
    }
    return {makers[0].layer, network.shape(makers[0].layer).channels - before + classes};
  }
  const int layer = layer_of_channels(network, input);
  return std::visit(
      [&](auto kind) -> ClassLayer {
        if constexpr (requires { head_channels(kind); }) {
          kind.classes = classes;
          return {layer, head_channels(kind)};
        } else if constexpr (requires { head_values(kind); }) {
          kind.classes = classes;
          return {layer, head_values(kind) / (map.rows * map.cols)};
        } else {
          expects(false, "the layer is a head");
          return {};
        }
      },
      spec.operation);
}

std::string adapt_command(const std::string& model, const std::string& data) {
  return fmt::format(
      "`tessera adapt {} --data {} --out my.cfg`", shell_word(model), shell_word(data));
}

void expect_output_for_each_class(const Network& network,
                                  const std::string& model,
                                  const Dataset& dataset,
                                  const std::string& path) {
  const std::vector<partitioner::Loss> all = losses(network);
  expects(!all.empty(), "a network that is trained or evaluated has a loss");
  for (const partitioner::Loss& loss : all) {
    if (!has_output_for_each(network, loss, dataset)) {
      throw InputError(path,
                       0,
                       fmt::format("{}; the classes are {}",
                                   difference(network, loss, model, dataset, path),
                                   listed_classes(dataset)));
    }
  }
}

std::optional<std::string> spare_outputs(const Network& network,
                                         const std::string& model,
                                         const Dataset& dataset,
                                         const std::string& path) {
  for (const partitioner::Loss& loss : losses(network)) {
    if (has_spare_outputs(network, loss, dataset)) {
      return difference(network, loss, model, dataset, path) +
             ", or the spare outputs only learn that they are never right";
    }
  }
  return std::nullopt;
}

TargetKind target_kind(const Network& network) {
  return is_detector(network) ? TargetKind::Boxes : TargetKind::Classes;
}

Dataset open_labelled(const std::string& path,
                      Split split,
                      const partitioner::Network& network,
                      const std::string& model,
                      bool allow_unlabelled) {
  Dataset dataset =
      list_dataset(path,
                   split,
                   network.image.channels,
                   {.kind = target_kind(network), .allow_unlabelled = allow_unlabelled});
  expect_outputs(network, model, dataset, path);
  return dataset;
}

void expect_outputs(const partitioner::Network& network,
                    const std::string& model,
                    const Dataset& dataset,
                    const std::string& path) {
  // Where a class is wrong, their number may be.
  const auto problems = dataset.problems();
  if (std::none_of(problems.begin(), problems.end(), [](const DataProblem& each) {
        return is_error(each.fault) && !is_of_picture(each.fault);
      })) {
    expect_output_for_each_class(network, model, dataset, path);
  }
}

}  // namespace tessera::engine
