#include "partitioner/network/losses.h"

#include <algorithm>

namespace tessera::partitioner {

namespace {

using Readers = std::vector<std::vector<int>>;  // by layer

Readers readers_by_layer(const Network& network) {
  Readers readers(network.layers.size());
  for (int layer = 0; layer < network.size(); ++layer) {
    for (const int input : network.layer(layer).inputs) {
      if (input != kImage) {
        readers[static_cast<std::size_t>(input)].push_back(layer);
      }
    }
  }
  return readers;
}

const LayerTraits& traits_of(const Network& network, int layer) {
  return layer_traits(network.layer(layer).operation);
}

// The layer that the branch which `end` ends is judged by, kImage where there is none.
int judged_layer(const Network& network, int end) {
  int cost = kImage;
  int layer = end;
  while (layer != kImage && traits_of(network, layer).passes_input_on) {
    const bool is_cost = traits_of(network, layer).loss == LossForm::SquaredError;
    cost = is_cost ? layer : cost;
    layer = network.layer(layer).inputs.front();
  }
  const LossForm form = layer == kImage ? LossForm::None : traits_of(network, layer).loss;
  return form == LossForm::CrossEntropy || form == LossForm::Boxes ? layer : cost;
}

// Whether all that reads the map passes it on to ends of the network.
bool only_ends(const Network& network, const Readers& readers, int layer) {
  const std::vector<int>& all = readers[static_cast<std::size_t>(layer)];
  return std::all_of(all.begin(), all.end(), [&](int reader) {
    return traits_of(network, reader).passes_input_on && only_ends(network, readers, reader);
  });
}

double weight_of(const Operation& operation) {
  if (const auto* softmax = std::get_if<Softmax>(&operation)) {
    return softmax->scale;
  }
  const auto* cost = std::get_if<Cost>(&operation);
  return cost == nullptr ? 1 : cost->scale;
}

}  // namespace

std::vector<Loss> losses(const Network& network) {
  const Readers readers = readers_by_layer(network);
  std::vector<Loss> found;
  for (const int end : ends(network)) {
    const int layer = judged_layer(network, end);
    if (layer != kImage) {
      found.push_back({.layer = layer,
                       .form = traits_of(network, layer).loss,
                       .weight = weight_of(network.layer(layer).operation),
                       .gets_gradient = !only_ends(network, readers, layer)});
    }
  }
  std::sort(
      found.begin(), found.end(), [](const Loss& a, const Loss& b) { return a.layer < b.layer; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<Loss> loss_of(const Network& network, int layer) {
  for (const Loss& loss : losses(network)) {
    if (loss.layer == layer) {
      return loss;
    }
  }
  return std::nullopt;
}

Index classes_of(const Network& network, int layer) {
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        if constexpr (requires { kind.classes; }) {
          return kind.classes;
        } else {
          return network.shape(layer).volume();
        }
      },
      network.layer(layer).operation);
}

int output_layer(const Network& network) {
  const std::vector<Loss> all = losses(network);
  return all.empty() ? network.size() - 1 : all.back().layer;
}

std::vector<int> ends(const Network& network) {
  const Readers readers = readers_by_layer(network);
  std::vector<int> found;
  for (int layer = 0; layer < network.size(); ++layer) {
    if (readers[static_cast<std::size_t>(layer)].empty()) {
      found.push_back(layer);
    }
  }
  return found;
}

std::vector<int> output_layers(const Network& network) {
  std::vector<int> heads;
  for (const Loss& loss : losses(network)) {
    if (loss.form == LossForm::Boxes) {
      heads.push_back(loss.layer);
    }
  }
  return heads.empty() ? std::vector<int>{output_layer(network)} : heads;
}

std::vector<int> assigned_heads(const Network& network) {
  std::vector<int> heads;
  for (const Loss& loss : losses(network)) {
    if (std::holds_alternative<YoloxHead>(network.layer(loss.layer).operation)) {
      heads.push_back(loss.layer);
    }
  }
  return heads;
}

bool is_detector(const Network& network) {
  const std::vector<Loss> all = losses(network);
  return std::any_of(
      all.begin(), all.end(), [](const Loss& loss) { return loss.form == LossForm::Boxes; });
}

}  // namespace tessera::partitioner
