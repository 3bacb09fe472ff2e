#include "engine/layers/workspace.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/ops/convolution/deconvolution.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

namespace {

bool convolves(const partitioner::LayerSpec& spec) {
  return partitioner::layer_traits(spec.operation).rated_as == partitioner::RatedAs::Convolution;
}

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
  if (convolves(spec)) {
    return convolution_workspace(network, layer, plan.kernels_of(layer), tile, options);
  }
  if (std::holds_alternative<partitioner::Softmax>(spec.operation)) {
    const Index arrays = options.training && spec.has_backward ? 3 : 1;
    return arrays * required_input(network, layer, 0, tile.computed).volume();
  }
  return 0;
}

constexpr Index kScalarBytes = 4;

// Bytes that a pass of a convolution takes on the rank that needs most.
Index pass_bytes(const partitioner::Network& network,
                 const partitioner::Plan& plan,
                 int layer,
                 ConvolutionPass pass,
                 ConvolutionKernel kernel) {
  const ConvolutionShape shape = convolution_shape(network, layer);
  Index most = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const partitioner::Tile& tile = plan.tile(layer, rank);
    const Region& region = pass == ConvolutionPass::Forward ? tile.computed : tile.backward;
    most = std::max(most, convolution_workspace(kernel, pass, shape, region));
  }
  return most * kScalarBytes;
}

// What to try instead of each kernel, ever smaller.
std::vector<ConvolutionKernel> smaller_kernels(ConvolutionKernel kernel) {
  switch (kernel) {
    case ConvolutionKernel::Winograd4:
      return {kernel, ConvolutionKernel::Winograd2, ConvolutionKernel::Direct};
    case ConvolutionKernel::Winograd2:
      return {kernel, ConvolutionKernel::Direct};
    case ConvolutionKernel::Direct:
    case ConvolutionKernel::Reference:
      break;
  }
  return {kernel};
}

void expect_workspace(const partitioner::Network& network, int layer, Index needed, Index bytes) {
  if (needed > bytes) {
    throw InputError(
        "--workspace",
        0,
        fmt::format("layer {} ({}) needs at least {}: give more than {}, or cut it into more tiles",
                    layer,
                    kind_name(network.layer(layer).operation),
                    readable_bytes(needed),
                    readable_bytes(bytes)));
  }
}

}  // namespace

std::vector<ConvolutionKernels> kernels_within(const partitioner::Network& network,
                                               const partitioner::Plan& plan,
                                               Index bytes) {
  std::vector<ConvolutionKernels> kernels = plan.kernels;
  for (int layer = 0; layer < network.size(); ++layer) {
    if (!std::holds_alternative<partitioner::Convolution>(network.layer(layer).operation)) {
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const Index elements = layer_workspace(network, plan, layer, rank, {});
        expect_workspace(network, layer, elements * kScalarBytes, bytes);
      }
      continue;
    }
    const auto fit = [&](ConvolutionPass pass, ConvolutionKernel& kernel) {
      Index needed = 0;
      for (const ConvolutionKernel smaller : smaller_kernels(kernel)) {
        kernel = smaller;
        needed = pass_bytes(network, plan, layer, pass, kernel);
        if (needed <= bytes) {
          return;
        }
      }
      expect_workspace(network, layer, needed, bytes);
    };
    ConvolutionKernels& chosen = kernels[static_cast<std::size_t>(layer)];
    fit(ConvolutionPass::Forward, chosen.forward);
    const int input = network.layer(layer).inputs[0];
    if (input != partitioner::kImage && network.takes_gradient(input)) {
      fit(ConvolutionPass::BackwardData, chosen.backward_data);
    }
    if (network.layer(layer).has_backward) {
      fit(ConvolutionPass::BackwardWeights, chosen.backward_weights);
    }
  }
  return kernels;
}

ConvolutionShape convolution_shape(const partitioner::Network& network, int layer) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  ConvolutionShape shape{.channels = network.shape(spec.inputs[0]).channels};
  const auto take = [&shape](const auto& kind) {
    shape.filters = kind.filters;
    shape.size = kind.size;
    shape.stride = kind.stride;
    shape.padding = kind.padding;
  };
  if (const auto* deconvolution = std::get_if<partitioner::Deconvolution>(&spec.operation)) {
    take(*deconvolution);
    return shape;
  }
  const auto& convolution = std::get<partitioner::Convolution>(spec.operation);
  take(convolution);
  shape.groups = convolution.groups;
  shape.dilation = convolution.dilation;
  return shape;
}

Index convolution_workspace(const partitioner::Network& network,
                            int layer,
                            const ConvolutionKernels& kernels,
                            const partitioner::Tile& tile,
                            const WorkspaceOptions& options) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  const int input = spec.inputs[0];
  const bool to_data =
      network.takes_gradient(input) && (input != partitioner::kImage || options.image_gradient);
  const Region backward = options.training && spec.has_backward ? tile.backward : Region{};
  const ConvolutionShape shape = convolution_shape(network, layer);
  if (!std::holds_alternative<partitioner::Deconvolution>(spec.operation)) {
    return convolution_workspace({shape, kernels}, tile.computed, backward, to_data);
  }
  const auto needed = [&](ConvolutionPass pass, const Region& region) {
    return deconvolution_workspace(pass, shape, region, required_input(network, layer, 0, region));
  };
  return std::max({needed(ConvolutionPass::Forward, tile.computed),
                   needed(ConvolutionPass::BackwardWeights, backward),
                   to_data ? needed(ConvolutionPass::BackwardData, backward) : 0});
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

}  // namespace tessera::engine
