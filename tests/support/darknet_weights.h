// All that a DarknetWeightsReader reads.

#pragma once

#include <filesystem>

#include "engine/files/darknet_weights.h"

namespace tessera::tests {

// Layers that a partial file lacks have empty vectors.
inline engine::DarknetWeights read_darknet_weights(const std::filesystem::path& path,
                                                   const partitioner::Network& network,
                                                   const partitioner::NormRule& norm = {},
                                                   bool allow_partial = false) {
  const engine::DarknetWeightsReader file(path, network, norm, allow_partial);
  engine::DarknetWeights weights;
  weights.seen = file.seen();
  weights.layers.resize(static_cast<std::size_t>(network.size()));
  weights.layers_filled = file.layers_filled();
  for (int index = 0; index < weights.layers_filled; ++index) {
    engine::LayerWeights& layer = weights.layers[static_cast<std::size_t>(index)];
    layer = file.vectors(index);
    const partitioner::ParameterShape shape = layer_parameters(network, index).weight;
    layer.weight.resize(static_cast<std::size_t>(shape.channels * shape.row));
    file.read_weight(index, 0, layer.weight);
  }
  return weights;
}

}  // namespace tessera::tests
