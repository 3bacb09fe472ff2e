// Which kernel computes a convolution: part of the decision, the same on every rank, because copies
// of a cell must hold the same bits.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

enum class ConvolutionKernel {
  Direct,  // accumulates in registers, for any convolution; the bits of a cell do not depend on the
           // cut
  Winograd2,  // F(2x2, 3x3): 3x3 of stride 1 without groups
  Winograd4,  // F(4x4, 3x3): likewise
  Reference,  // plain loops, slow, for comparison
};
inline constexpr ConvolutionKernel kConvolutionKernels[] = {ConvolutionKernel::Direct,
                                                            ConvolutionKernel::Winograd2,
                                                            ConvolutionKernel::Winograd4,
                                                            ConvolutionKernel::Reference};

// Side of the tiles of outputs that one of Winograd's kernels computes at once; 0 for the others.
[[nodiscard]] constexpr Index winograd_side(ConvolutionKernel kernel) {
  return kernel == ConvolutionKernel::Winograd2   ? 2
         : kernel == ConvolutionKernel::Winograd4 ? 4
                                                  : 0;
}

// Elements of a layer's filters, transformed, as Winograd's kernels lay them out; and whether a
// pass transforms them once and keeps them until it ends. Of more it keeps a part at a time and
// transforms each part again for each batch of tiles.
[[nodiscard]] Index winograd_filter_elements(Index side, Index channels, Index filters);
[[nodiscard]] bool keeps_winograd_filters(Index side, Index channels, Index filters);

// "direct", "winograd2", "winograd4", "reference"
[[nodiscard]] std::string_view name_of(ConvolutionKernel kernel);
[[nodiscard]] std::optional<ConvolutionKernel> kernel_named(std::string_view name);

// The kernels of the three passes of one layer.
struct ConvolutionKernels {
  ConvolutionKernel forward = ConvolutionKernel::Direct;
  ConvolutionKernel backward_data = ConvolutionKernel::Direct;
  ConvolutionKernel backward_weights = ConvolutionKernel::Direct;

  friend bool operator==(const ConvolutionKernels&, const ConvolutionKernels&) = default;
};

[[nodiscard]] constexpr ConvolutionKernels all_passes(ConvolutionKernel kernel) {
  return {kernel, kernel, kernel};
}

// Why the kernel cannot compute the layer, words that follow "layer 3": "has a stride of 2x2";
// nothing where it can.
[[nodiscard]] std::optional<std::string> obstacle(ConvolutionKernel kernel,
                                                  const Network& network,
                                                  int layer);
[[nodiscard]] inline bool applies(ConvolutionKernel kernel, const Network& network, int layer) {
  return !obstacle(kernel, network, layer);
}

// Whether the gradient of the layer's weights, by that kernel, is summed from the argmax of the
// max-pool behind the layer, where a rank has all of them: with few input channels, and nothing
// between pre-activations and pool but an activation.
[[nodiscard]] bool weights_from_argmax(ConvolutionKernel backward_weights,
                                       const Network& network,
                                       int layer);

// How kernels are chosen where nothing was measured.
enum class KernelRule {
  Direct,
  Winograd,  // F(4x4, 3x3) wherever it applies
  Reference,
  // F(4x4, 3x3), on small maps F(2x2, 3x3), where fewer multiplications are sure to outweigh
  // transforms
  Usual,
};

// "direct", "winograd", "reference", "usual"
[[nodiscard]] std::optional<KernelRule> kernel_rule_named(std::string_view name);

// What the rule says for each layer of the network; direct kernels where the list ends.
[[nodiscard]] std::vector<ConvolutionKernels> choose_kernels(const Network& network,
                                                             KernelRule rule);

}  // namespace tessera::partitioner
