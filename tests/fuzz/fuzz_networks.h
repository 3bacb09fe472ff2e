// The small network that files are read for: a layer of each kind that has parameters, and an edge
// that skips layers.

#pragma once

#include "partitioner/network/network.h"

namespace tessera::tests {

[[nodiscard]] inline partitioner::Network fuzz_network() {
  using namespace partitioner;  // NOLINT(google-build-using-namespace)
  Network network;
  network.image = {.channels = 2, .rows = 9, .cols = 7};
  add_layer(
      network,
      Convolution{.filters = 4, .size = 3, .padding = 1, .groups = 2, .batch_normalize = true},
      {kImage});
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {0});
  add_layer(network, Shortcut{}, {1, 0});
  add_layer(network, MaxPool{.size = 2, .stride = 2, .padding = 1}, {2});
  add_layer(network, Connected{.outputs = 5, .batch_normalize = true}, {3});
  add_layer(network, Connected{.outputs = 3}, {4});
  add_layer(network, Softmax{}, {5});
  return network;
}

}  // namespace tessera::tests
