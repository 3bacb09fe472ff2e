#include "partitioner/network/frozen_layers.h"

#include <fmt/format.h>

namespace tessera::partitioner {

namespace {

std::string layers_text(int last) {
  return last < 0 ? "no layer" : last == 0 ? "layer 0" : fmt::format("layers 0 to {}", last);
}

// That the step is one of.
FrozenSteps part_of(const FrozenLayers& layers, Index step) {
  for (const FrozenSteps& part : layers.at_first) {
    if (step <= part.end) {
      return part;
    }
  }
  return {.end = 0, .last = layers.last};
}

}  // namespace

int FrozenLayers::last_in(Index step) const {
  return part_of(*this, step).last;
}

Index FrozenLayers::end_of(Index step) const {
  return part_of(*this, step).end;
}

// From the last layer on, where those before matter only if they are frozen for longer.
FrozenLayers frozen_layers(const Network& network) {
  FrozenLayers result{last_frozen(network), {}};
  Index longest = 0;
  for (int layer = network.size() - 1; layer > result.last; --layer) {
    const Index steps = network.layer(layer).frozen_steps;
    if (steps > longest) {
      longest = steps;
      result.at_first.push_back({steps, layer});
    }
  }
  return result;
}

void freeze(Network& network, const FrozenLayers& layers) {
  for (LayerSpec& layer : network.layers) {
    layer.frozen_steps = 0;
  }
  for (const FrozenSteps& part : layers.at_first) {
    freeze(network, part.last);
    network.layers[static_cast<std::size_t>(part.last)].frozen_steps = part.end;
  }
  freeze(network, layers.last);
}

Network network_in_step(const Network& network, Index step) {
  Network result = network;
  freeze(result, frozen_layers(network).last_in(step));
  return result;
}

std::vector<Network> networks_in_turn(const Network& network) {
  std::vector<Network> networks;
  for (const FrozenSteps& part : frozen_layers(network).at_first) {
    networks.push_back(network_in_step(network, part.end));
  }
  networks.push_back(network);
  return networks;
}

std::string to_text(const FrozenLayers& layers) {
  std::string text;
  for (const FrozenSteps& part : layers.at_first) {
    text += fmt::format("{}{} frozen in the first {} steps",
                        text.empty() ? "" : ", ",
                        layers_text(part.last),
                        part.end);
  }
  return text.empty()      ? layers_text(layers.last) + " frozen"
         : layers.last < 0 ? text
                           : text + ", then " + layers_text(layers.last);
}

}  // namespace tessera::partitioner
