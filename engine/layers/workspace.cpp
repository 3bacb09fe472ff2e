#include "engine/layers/workspace.h"

#include <algorithm>

namespace engine {

namespace {

WorkspaceSize layer_workspace(const partitioner::Network& network,
                              const partitioner::Plan& plan,
                              int layer,
                              int rank,
                              bool training) {
  const partitioner::Tile& tile = plan.tile(layer, rank);
  const partitioner::LayerSpec& spec = network.layer(layer);
  if (tile.computed.empty()) {
    return {};
  }
  if (std::holds_alternative<partitioner::Convolution>(spec.operation)) {
    const ConvolutionShape shape = convolution_shape(network, layer);
    const Region backward = training ? tile.backward : Region{};
    return {
        convolution_workspace({shape, plan.kernels_of(layer)}, tile.computed.channels, backward),
        0};
  }
  if (std::holds_alternative<partitioner::Connected>(spec.operation)) {
    const Index inputs = network.shape(spec.inputs[0]).volume();
    return {{}, tile.computed.volume() + tile.computed.images.size() * inputs};
  }
  if (std::holds_alternative<partitioner::Softmax>(spec.operation)) {
    return {{}, (training ? 3 : 1) * required_input(network, layer, 0, tile.computed).volume()};
  }
  return {};
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

WorkspaceSize workspace_size(const partitioner::Network& network,
                             const partitioner::Plan& plan,
                             int rank,
                             bool training) {
  WorkspaceSize size;
  for (int layer = 0; layer < network.size(); ++layer) {
    const WorkspaceSize needed = layer_workspace(network, plan, layer, rank, training);
    size.convolution = larger(size.convolution, needed.convolution);
    size.features = std::max(size.features, needed.features);
  }
  return size;
}

}  // namespace engine
