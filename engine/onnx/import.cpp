#include "engine/onnx/import.h"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <set>

#include "engine/execution/parameters.h"
#include "engine/files/atomic_file.h"
#include "engine/onnx/import_nodes.h"
#include "engine/onnx/import_weights.h"
#include "engine/onnx/messages.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostText = std::size_t{8} << 20U;  // of a model file

// What the written text says when it is read, by way of which all of it is checked.
partitioner::ModelFile read_back(const OnnxFile& file,
                                 const ImportedModel& model,
                                 const std::string& text) {
  if (text.size() > kMostText) {
    file.refuse("has more layers than a model file may have");
  }
  partitioner::ModelFile again;
  try {
    again = partitioner::parse_model(text, "its model file");
  } catch (const InputError& error) {
    file.refuse(error.what());
  }
  expects(std::equal(again.network.layers.begin(),
                     again.network.layers.end(),
                     model.network.layers.begin(),
                     model.network.layers.end(),
                     [](const auto& a, const auto& b) {
                       return a.operation == b.operation && a.inputs == b.inputs &&
                              a.output == b.output;
                     }),
          "a model file says what was translated");
  return again;
}

bool is_own_normalization(const ImportedParameters& parameters) {
  return parameters.norm && parameters.weight.stored == nullptr;
}

std::vector<std::string> notices_of(const Translation& translation, const ImportedModel& model) {
  std::vector<std::string> notices = translation.notices();
  std::set<float> epsilons;
  std::set<float> rates;
  int own = 0;
  bool has_convolutions = false;
  for (const ImportedParameters* source : sources_of(translation, model)) {
    if (source != nullptr && source->norm) {
      epsilons.insert(static_cast<float>(source->norm->epsilon));
      rates.insert(static_cast<float>(source->norm->rate));
      own += is_own_normalization(*source) ? 1 : 0;
    }
    has_convolutions = has_convolutions || (source != nullptr && source->weight.shape.size() == 4);
  }
  if (epsilons.empty() && has_convolutions) {
    notices.emplace_back(
        "it has no batch normalisation, which exporters fold into convolutions unless told not to "
        "(training=TrainingMode.PRESERVE, do_constant_folding=False), so it trains without any");
  }
  if (epsilons.size() > 1) {
    notices.push_back(fmt::format(
        "its batch normalisations have {} epsilons: the model has the least, {}, and what others "
        "have beyond it is added to their running variances",
        epsilons.size(),
        *epsilons.begin()));
  }
  if (rates.size() > 1) {
    notices.push_back(fmt::format("its batch normalisations have {} momenta: the model has one, {}",
                                  rates.size(),
                                  static_cast<float>(1 - model.norm.rate)));
  }
  if (own > 0) {
    notices.push_back(
        fmt::format("{} batch normalisations that follow no convolution of their own "
                    "are depthwise convolutions of 1x1 with weights of 1",
                    own));
  }
  const auto& layers = model.network.layers;
  const auto held = std::count_if(layers.begin(), layers.end(), [](const auto& layer) {
    return layer.learning.rate_factor == 0;
  });
  if (held > 0) {
    notices.push_back(
        fmt::format("{} average pools or products with constants are depthwise convolutions with "
                    "learning_rate=0: their weights stay",
                    held));
  }
  if (losses(model.network).empty()) {
    notices.emplace_back(
        "it has no loss to train with: for a classifier add [softmax] at its end, for a detector "
        "heads");
  }
  return notices;
}

// A small file can ask for much: that is its fault, not the machine's.
template <class Work>
auto within_memory(const std::filesystem::path& from, Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw InputError(from.string(), 0, "takes more memory than there is");
  }
}

// Convolutions of slices of the input (Focus) have channels in another order than space_to_depth.
// As far as the graph can be translated, that tells which.
void take_channel_orders(const OnnxFile& file,
                         const partitioner::Network& network,
                         std::vector<ImportedParameters>& nodes) {
  const bool has_slices = std::any_of(
      network.layers.begin(), network.layers.end(), [](const partitioner::LayerSpec& layer) {
        return std::holds_alternative<partitioner::SpaceToDepth>(layer.operation);
      });
  if (!has_slices) {
    return;
  }
  std::optional<Translation> translation;
  try {
    translation.emplace(file, size_of(network.image));
    translation->run();
  } catch (const InputError&) {
    // What comes behind need not be a model.
  }
  if (!translation) {
    return;
  }
  for (const auto& [layer, parameters] : translation->all_parameters()) {
    for (ImportedParameters& node : nodes) {
      if (!parameters.channel_order.empty() && node.node == parameters.node &&
          node.weight.stored == parameters.weight.stored) {
        node.channel_order = parameters.channel_order;
      }
    }
  }
}

// YOLOX's own programs take pixels from 0 to 255 with blue first; models here from 0 to 1 with red
// first. Its graphs are known by their slices and the model's heads. Returns whether it is one.
bool take_pixels_of_yolox(const partitioner::Network& network,
                          std::vector<ImportedParameters>& nodes) {
  constexpr int kColours = 3;
  constexpr float kMostOfPixel = 255;
  const auto reads_pixels = std::find_if(
      network.layers.begin(), network.layers.end(), [](const partitioner::LayerSpec& layer) {
        return has_weights(layer.operation);
      });
  if (nodes.empty() || nodes.front().channel_order.empty() || assigned_heads(network).empty() ||
      network.image.channels != kColours || reads_pixels == network.layers.end() ||
      reads_pixels - network.layers.begin() != 1) {
    return false;
  }
  for (int& channel : nodes.front().channel_order) {
    channel += kColours - 1 - 2 * (channel % kColours);
  }
  nodes.front().weight_factor = kMostOfPixel;
  return true;
}

// Of each layer of the network that has weights, the node that they come from.
ParameterSources fitting_nodes(const OnnxFile& file,
                               const std::vector<ImportedParameters>& nodes,
                               const partitioner::Network& network) {
  ParameterSources sources(static_cast<std::size_t>(network.size()), nullptr);
  std::size_t used = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    if (!has_weights(network.layer(layer).operation)) {
      continue;
    }
    const std::string here =
        fmt::format("layer {} ({})", layer, kind_name(network.layer(layer).operation));
    if (used == nodes.size()) {
      file.refuse(fmt::format("has weights for {} layers, none for {} of the model", used, here));
    }
    const ImportedParameters& node = nodes[used++];
    partitioner::ParameterPlan weight;
    weight.layer = layer;
    weight.shape = layer_parameters(network, layer).weight;
    const std::vector<Index> shape = parameter_shape(network, weight);
    if (node.weight.shape != shape) {
      file.refuse(fmt::format("the weights of node '{}' are {}, those of {} of the model {}",
                              node.node,
                              sides(node.weight.shape),
                              here,
                              sides(shape)));
    }
    sources[static_cast<std::size_t>(layer)] = &node;
  }
  if (used < nodes.size()) {
    file.refuse(
        fmt::format("has weights for {} layers, the model has {} with weights: the next is "
                    "node '{}'",
                    nodes.size(),
                    used,
                    nodes[used].node));
  }
  return sources;
}

// The model file that `export` has put into the file, filled with the weights of the graph; false
// where there is none, or the graph has other weights by now.
bool is_restored(const OnnxFile& file, const Import& import) {
  const std::string text = file.metadata(kModelFileKey);
  if (text.empty() || text.size() > kMostText || import.size.rows > 0) {
    return false;
  }
  try {
    const partitioner::ModelFile model = partitioner::parse_model(text, import.from.string());
    const std::vector<ImportedParameters> nodes = weighted_nodes(file);
    const std::unique_ptr<SafetensorsWriter> weights = written_parameters(
        file, model, fitting_nodes(file, nodes, model.network), weights_beside(import.cfg));
    AtomicFile cfg(import.cfg, Links::Follow);
    cfg.write(text);
    weights->commit();
    cfg.commit();
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<std::string> written_model(const Import& import) {
  const OnnxFile file(import.from);
  if (is_restored(file, import)) {
    return {};
  }
  Translation translation(file, import.size);
  translation.run();
  const ImportedModel model = model_of(translation);
  const std::string text = cfg_text(model);
  const partitioner::ModelFile read = read_back(file, model, text);
  const std::unique_ptr<SafetensorsWriter> weights =
      written_parameters(file, read, sources_of(translation, model), weights_beside(import.cfg));
  AtomicFile cfg(import.cfg, Links::Follow);
  cfg.write(text);
  weights->commit();
  cfg.commit();
  return notices_of(translation, model);
}

}  // namespace

std::filesystem::path weights_beside(const std::filesystem::path& cfg) {
  std::filesystem::path weights = cfg;
  return weights.replace_extension(".safetensors");
}

std::vector<std::string> import_onnx(const Import& import) {
  return within_memory(import.from, [&] { return written_model(import); });
}

std::vector<std::string> import_onnx_weights(const std::filesystem::path& from,
                                             const partitioner::ModelFile& model,
                                             const std::filesystem::path& to) {
  return within_memory(from, [&]() -> std::vector<std::string> {
    const OnnxFile file(from);
    std::vector<ImportedParameters> nodes = weighted_nodes(file);
    take_channel_orders(file, model.network, nodes);
    const bool is_yolox = take_pixels_of_yolox(model.network, nodes);
    written_parameters(file, model, fitting_nodes(file, nodes, model.network), to)->commit();
    if (!is_yolox) {
      return {};
    }
    return {
        fmt::format("the first weights are turned from pixels of 0 to 255, blue first, as YOLOX "
                    "has them, to 0 to 1, red first, as this program has them (node '{}')",
                    nodes.front().node)};
  });
}

}  // namespace tessera::engine
