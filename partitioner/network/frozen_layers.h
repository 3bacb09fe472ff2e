// Which layers of a network do not learn: some for good, more in the first steps of a training.
// Layers are frozen from the first one on, so the last of them says which.

#pragma once

#include <string>
#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// In the steps up to `end`, counted from 1, the layers up to `last` are frozen.
struct FrozenSteps {
  Index end = 0;
  int last = -1;
  friend bool operator==(const FrozenSteps&, const FrozenSteps&) = default;
};

struct FrozenLayers {
  int last = -1;                           // for good; -1: none
  std::vector<FrozenSteps> at_first = {};  // more than these: ends rise, layers become fewer

  // The last one in that step of a training.
  [[nodiscard]] int last_in(Index step) const;
  // The last step, from that one on, in which the same layers are frozen; 0: they stay so.
  [[nodiscard]] Index end_of(Index step) const;

  friend bool operator==(const FrozenLayers&, const FrozenLayers&) = default;
};

// As the layers of a network say, which are frozen as in the end (LayerSpec::frozen_steps).
[[nodiscard]] FrozenLayers frozen_layers(const Network& network);

// Makes them those of a network. Throws as freeze(Network&, int) does, of all of them.
void freeze(Network& network, const FrozenLayers& layers);

// The network as it is in that step of a training.
[[nodiscard]] Network network_in_step(const Network& network, Index step);

// All that it is in a training, one after the other; the last one is `network`.
[[nodiscard]] std::vector<Network> networks_in_turn(const Network& network);

// "no layer frozen", "layers 0 to 3 frozen", "layers 0 to 12 frozen in the first 800 steps".
[[nodiscard]] std::string to_text(const FrozenLayers& layers);

}  // namespace tessera::partitioner
