#include "engine/session/model_setup.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <stdexcept>

#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/comm/texts_of_ranks.h"
#include "engine/run_files/names.h"
#include "engine/train/checkpoints/intact_checkpoint.h"
#include "engine/train/checkpoints/stored_metadata.h"
#include "engine/train/checkpoints/training_record.h"
#include "partitioner/base/spelling.h"
#include "partitioner/network/input_sizes.h"
#include "partitioner/network/losses.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

partitioner::ModelFile load_model(const std::string& path,
                                  const Communicator& communicator,
                                  const SessionObserver& observer) {
  partitioner::ModelFile model;
  if (path.ends_with(".safetensors")) {
    const std::string text = stored_metadata(path, "model", communicator);
    if (text.empty()) {
      throw AgreedError(path + ": has no model in it: give the model file, NAME.cfg, first");
    }
    return agreed(communicator, [&] { return partitioner::parse_model(text, path); });
  }
  throw_agreed(
      communicator,
      named_problem(communicator, problem_of([&] { model = partitioner::read_model(path); })));
  expect_same(model.text, path, communicator);
  for (const std::string& warning : model.warnings) {
    observer.warn(warning, communicator);
  }
  return model;
}

partitioner::Network resized(const partitioner::Network& network, const std::string& size) {
  if (size.empty()) {
    return network;
  }
  const auto [rows, cols] = partitioner::parse_grid(size, "--size", partitioner::kPixels);
  try {
    return with_input(network, {rows, cols});
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("--size {}: {}", size, error.what()));
  }
}

namespace {

// What may have been meant by a word: the layers of a kind.
std::string layers_like(const partitioner::Network& network, const std::string& text) {
  std::vector<std::string_view> kinds;
  for (const partitioner::LayerSpec& layer : network.layers) {
    kinds.emplace_back(kind_name(layer.operation));
  }
  const std::string_view kind = nearest_word(text, kinds);
  std::string found;
  for (int layer = 0; layer < network.size() && !kind.empty(); ++layer) {
    if (kind == kind_name(network.layer(layer).operation)) {
      found += fmt::format("{}{}", found.empty() ? "" : ", ", layer);
    }
  }
  return found.empty() ? "" : fmt::format(" ({}: {})", kind, found);
}

int parse_layer(const partitioner::Network& network, const std::string& text) {
  constexpr std::string_view kAsInFiles = "layers.";  // names of tensors begin so
  const std::size_t start = text.starts_with(kAsInFiles) ? kAsInFiles.size() : 0;
  const char* const end = text.data() + text.size();
  int layer = 0;
  const auto [stop, error] = std::from_chars(text.data() + start, end, layer);
  if (error != std::errc{} || stop != end || layer < 0 || layer >= network.size()) {
    throw InputError("--freeze",
                     0,
                     fmt::format("\"{}\" is not a layer: give the number of the last layer to "
                                 "freeze, from 0 to {}{}, or none",
                                 text,
                                 network.size() - 1,
                                 layers_like(network, text)));
  }
  return layer;
}

}  // namespace

partitioner::Network frozen(partitioner::Network network, const std::string& layer) {
  if (layer.empty()) {
    return network;
  }
  try {
    if (layer == "none") {
      freeze(network, partitioner::FrozenLayers{});
    } else {
      freeze(network, parse_layer(network, layer));
    }
  } catch (const std::invalid_argument& error) {
    throw InputError(fmt::format("--freeze {}: {}", layer, error.what()));
  }
  return network;
}

std::string weights_file(const std::string& path, const Communicator& communicator) {
  std::string file = path;
  on_root(communicator, [&] {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      return;
    }
    const std::filesystem::path folder = path;
    file = (folder / run_file::kBest).string();
    if (!std::filesystem::exists(file, error)) {
      file = newest_intact_checkpoint(folder).file.string();
    }
  });
  return texts_of_ranks(communicator, file).front();
}

std::string model_or_that_of(const std::string& weights, const std::string& model) {
  if (model.empty() && !weights.ends_with(".safetensors")) {
    throw AgreedError(weights +
                      ": expected a checkpoint, NAME.safetensors, which has its model in it; for "
                      "other weights give the model file, NAME.cfg, first");
  }
  return model.empty() ? weights : model;
}

namespace {

// What is another in the network that weights were trained with, in words that follow them.
std::optional<std::string> network_difference(const partitioner::Network& trained,
                                              const partitioner::Network& here) {
  const auto size = [](const partitioner::Network& network) {
    return fmt::format("{}x{}", network.image.rows, network.image.cols);
  };
  if (trained.size() != here.size()) {
    return fmt::format("were trained with {} layers, here are {}", trained.size(), here.size());
  }
  for (int layer = 0; layer < here.size(); ++layer) {
    const partitioner::LayerSpec& before = trained.layer(layer);
    const partitioner::LayerSpec& now = here.layer(layer);
    if (before.operation != now.operation || before.inputs != now.inputs) {
      return fmt::format("were trained with another layer {} ([{}]) than that of line {}",
                         layer,
                         kind_name(before.operation),
                         now.line);
    }
  }
  return trained.image == here.image
             ? std::nullopt
             : std::optional(fmt::format(
                   "were trained for inputs of {}, here they are {}", size(trained), size(here)));
}

}  // namespace

void warn_of_other_network(const std::string& weights,
                           const partitioner::ModelFile& model,
                           const Communicator& communicator,
                           const SessionObserver& observer) {
  const auto record = stored_training_record(weights, communicator);
  const auto difference =
      record
          ? output_difference(record->settings,
                              training_settings(model.training, model.augmentation, model.network))
          : std::nullopt;
  if (difference) {
    observer.warn(
        fmt::format("{} {}: what it has learnt is read in another way here", weights, *difference),
        communicator);
    return;
  }
  const std::string trained = stored_metadata(weights, "model", communicator);
  if (trained.empty() || trained == model.text) {
    return;
  }
  const auto before =
      agreed(communicator, [&] { return partitioner::parse_model(trained, weights); });
  auto other = network_difference(before.network, model.network);
  if (!other && before.training.norm != model.training.norm) {
    other = "were trained with another rule of batch normalisation";
  }
  if (other) {
    observer.warn(fmt::format("the weights in {} {}", weights, *other), communicator);
  }
}

RenderingRules rules_for_weights(const std::string& weights,
                                 const std::optional<Preparation>& stored,
                                 const partitioner::ModelFile& model,
                                 const PixelConvention& given,
                                 const Communicator& communicator,
                                 const SessionObserver& observer) {
  RenderingRules rules = rendering_rules(model, convention_in_effect(given, stored));
  if (stored) {
    if (const auto difference = pixel_difference(*stored, preparation_of(rules, {}))) {
      observer.warn(fmt::format("{} {}", weights, *difference), communicator);
    }
  }
  return rules;
}

void expect_loss(const partitioner::Network& network, const std::string& model) {
  if (losses(network).empty()) {
    throw InputError(
        model, 0, "the network has no loss to train with: end it with [softmax] or [cost]");
  }
}

}  // namespace tessera::engine
