#include "engine/onnx/import.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "engine/execution/parameters.h"
#include "engine/files/atomic_file.h"
#include "engine/onnx/import_nodes.h"
#include "engine/onnx/import_weights.h"
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
  if (losses(model.network).empty()) {
    notices.emplace_back(
        "it has no loss to train with: for a classifier add [softmax] at its end, for a detector "
        "heads");
  }
  return notices;
}

}  // namespace

std::filesystem::path weights_beside(const std::filesystem::path& cfg) {
  std::filesystem::path weights = cfg;
  return weights.replace_extension(".safetensors");
}

std::vector<std::string> import_onnx(const Import& import) {
  const OnnxFile file(import.from);
  Translation translation(file, import.size);
  translation.run();
  const ImportedModel model = model_of(translation);
  const std::string text = cfg_text(model);
  const partitioner::ModelFile read = read_back(file, model, text);
  const std::unique_ptr<SafetensorsWriter> weights =
      written_parameters(file,
                         model.network,
                         read.training.norm,
                         sources_of(translation, model),
                         weights_beside(import.cfg));
  AtomicFile cfg(import.cfg, Links::Follow);
  cfg.write(text);
  weights->commit();
  cfg.commit();
  return notices_of(translation, model);
}

void import_onnx_weights(const std::filesystem::path& from,
                         const partitioner::ModelFile& model,
                         const std::filesystem::path& to) {
  const OnnxFile file(from);
  const std::vector<ImportedParameters> nodes = weighted_nodes(file);
  const partitioner::Network& network = model.network;
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
  written_parameters(file, network, model.training.norm, sources, to)->commit();
}

}  // namespace tessera::engine
