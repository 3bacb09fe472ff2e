// Small networks in a line or two.

#pragma once

#include <vector>

#include "partitioner/network/network.h"

namespace tessera::tests {

// Each layer reads the one before.
[[nodiscard]] inline partitioner::Network chain(const partitioner::MapShape& image,
                                                const std::vector<partitioner::Operation>& layers) {
  partitioner::Network network;
  network.image = image;
  for (const partitioner::Operation& operation : layers) {
    add_layer(network, operation, {network.size() - 1});
  }
  return network;
}

// Padded so that an odd size with a stride of 1 keeps the size of the map.
[[nodiscard]] inline partitioner::Convolution convolution(
    Index filters,
    Index size,
    Index stride = 1,
    partitioner::Activation activation = partitioner::Activation::Leaky) {
  return {.filters = filters,
          .size = size,
          .stride = stride,
          .padding = size / 2,
          .activation = activation};
}

[[nodiscard]] inline partitioner::Convolution normalized(partitioner::Convolution convolution) {
  convolution.batch_normalize = true;
  return convolution;
}

}  // namespace tessera::tests
