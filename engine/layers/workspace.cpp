#include "engine/layers/workspace.h"

#include <algorithm>

namespace engine {

namespace {

Index layer_workspace(const partitioner::Network& network,
                      const partitioner::Plan& plan,
                      int layer,
                      int rank,
                      const WorkspaceOptions& options) {
  const partitioner::Tile& tile = plan.tile(layer, rank);
  const partitioner::LayerSpec& spec = network.layer(layer);
  if (tile.computed.empty()) {
    return 0;
  }
  if (std::holds_alternative<partitioner::Convolution>(spec.operation)) {
    const bool to_data = spec.inputs[0] != partitioner::kImage || options.image_gradient;
    return convolution_workspace({convolution_shape(network, layer), plan.kernels_of(layer)},
                                 tile.computed.channels,
                                 options.training ? tile.backward : Region{},
                                 to_data);
  }
  if (std::holds_alternative<partitioner::Connected>(spec.operation)) {
    const Index inputs = network.shape(spec.inputs[0]).volume();
    return tile.computed.volume() + tile.computed.images.size() * inputs;
  }
  if (std::holds_alternative<partitioner::Softmax>(spec.operation)) {
    const Index arrays = options.training ? 3 : 1;
    return arrays * required_input(network, layer, 0, tile.computed).volume();
  }
  return 0;
}

}  // namespace

ConvolutionShape convolution_shape(const partitioner::Network& network, int layer) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  const auto& convolution = std::get<partitioner::Convolution>(spec.operation);
  return {convolution.filters,
          network.shape(spec.inputs[0]).channels,
          convolution.size,
          convolution.stride,
          convolution.padding,
          convolution.groups};
}

Index workspace_elements(const partitioner::Network& network,
                         const partitioner::Plan& plan,
                         int rank,
                         const WorkspaceOptions& options) {
  Index most = 0;
  for (int layer = 0; layer < network.size(); ++layer) {
    most = std::max(most, layer_workspace(network, plan, layer, rank, options));
  }
  return most;
}

}  // namespace engine
