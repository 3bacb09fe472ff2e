#include "partitioner/partition/kernels.h"

#include <algorithm>
#include <fmt/format.h>

#include "partitioner/base/layout.h"

namespace tessera::partitioner {

namespace {

// Below these a tile's transforms take longer than the multiplications that they save; on large
// maps, where filters are transformed for many tiles, fewer are enough.
struct FewestChannels {
  Index channels = 0;
  Index products = 0;  // input channels times filters
};
constexpr FewestChannels kFewest{32, Index{32} * 64};
constexpr FewestChannels kFewestOnLargeMaps{16, Index{16} * 32};
constexpr Index kLargeMap = 32;  // cells along a side
// Along a side of the map. On maps of few tiles the filters' transforms count, which are larger for
// larger tiles.
constexpr Index kFewestCells4 = 12;
constexpr Index kFewestCells2 = 6;

ConvolutionKernel usual_winograd(const Network& network, int layer) {
  const LayerSpec& spec = network.layer(layer);
  const Index channels = network.shape(spec.inputs[0]).channels;
  const Index filters = spec.output.channels;
  const Index cells = std::min(spec.output.rows, spec.output.cols);
  const FewestChannels& fewest = cells < kLargeMap ? kFewest : kFewestOnLargeMaps;
  if (std::min(channels, filters) < fewest.channels || channels * filters < fewest.products ||
      cells < kFewestCells2) {
    return ConvolutionKernel::Direct;
  }
  return cells < kFewestCells4 ? ConvolutionKernel::Winograd2 : ConvolutionKernel::Winograd4;
}

ConvolutionKernel kernel_by(KernelRule rule, const Network& network, int layer) {
  if (rule == KernelRule::Reference) {
    return ConvolutionKernel::Reference;
  }
  if (rule == KernelRule::Direct || !applies(ConvolutionKernel::Winograd4, network, layer)) {
    return ConvolutionKernel::Direct;
  }
  return rule == KernelRule::Winograd ? ConvolutionKernel::Winograd4
                                      : usual_winograd(network, layer);
}

}  // namespace

Index winograd_filter_elements(Index side, Index channels, Index filters) {
  constexpr Index kBlock = 16;  // channels are computed in blocks of so many
  constexpr Index kTaps = 3;
  const Index positions = (side + kTaps - 1) * (side + kTaps - 1);
  const auto in_blocks = [](Index count) { return (count + kBlock - 1) / kBlock * kBlock; };
  return positions * in_blocks(channels) * in_blocks(filters);
}

bool keeps_winograd_filters(Index side, Index channels, Index filters) {
  constexpr Index kMostElements = Index{1} << 21U;
  return winograd_filter_elements(side, channels, filters) <= kMostElements;
}

std::string_view name_of(ConvolutionKernel kernel) {
  switch (kernel) {
    case ConvolutionKernel::Direct:
      return "direct";
    case ConvolutionKernel::Winograd2:
      return "winograd2";
    case ConvolutionKernel::Winograd4:
      return "winograd4";
    case ConvolutionKernel::Reference:
      return "reference";
  }
  return "";
}

std::optional<ConvolutionKernel> kernel_named(std::string_view name) {
  for (const ConvolutionKernel kernel : kConvolutionKernels) {
    if (name_of(kernel) == name) {
      return kernel;
    }
  }
  return std::nullopt;
}

std::optional<std::string> obstacle(ConvolutionKernel kernel, const Network& network, int layer) {
  const auto* convolution = std::get_if<Convolution>(&network.layer(layer).operation);
  if (convolution == nullptr) {
    return "is no convolution";
  }
  if (winograd_side(kernel) == 0) {
    return std::nullopt;
  }
  const auto differs = [](const char* what, const PerAxis& of_layer) {
    return fmt::format("has {} of {}x{}", what, of_layer.rows, of_layer.cols);
  };
  if (!(convolution->size == 3)) {
    return differs("filters", convolution->size);
  }
  if (!(convolution->stride == 1)) {
    return differs("a stride", convolution->stride);
  }
  if (convolution->dilation != 1) {
    return fmt::format("has a dilation of {}", convolution->dilation);
  }
  if (!convolution->padding.is_square()) {
    return differs("an unequal padding", convolution->padding);
  }
  return convolution->groups == 1
             ? std::nullopt
             : std::optional(fmt::format("has {} groups", convolution->groups));
}

bool weights_from_argmax(ConvolutionKernel backward_weights, const Network& network, int layer) {
  constexpr Index kMostRow = 40;  // numbers that a row of taps reads
  constexpr Index kMostSteps = 4;
  const auto* convolution = std::get_if<Convolution>(&network.layer(layer).operation);
  if (convolution == nullptr || layer + 1 == network.size()) {
    return false;
  }
  const auto* pool = std::get_if<MaxPool>(&network.layer(layer + 1).operation);
  const Index channels = network.shape(network.layer(layer).inputs[0]).channels;
  return backward_weights == ConvolutionKernel::Direct && !convolution->batch_normalize &&
         convolution->groups == 1 && convolution->dilation == 1 &&
         convolution->stride.rows <= kMostSteps && convolution->stride.cols <= kMostSteps &&
         pool != nullptr && pool->size > 1 && pool->size <= kMostSteps &&
         channels <= channel_block(channels) && convolution->size.rows <= kMostRow &&
         convolution->size.cols * channel_block(channels) <= kMostRow;
}

std::optional<KernelRule> kernel_rule_named(std::string_view name) {
  if (name == "direct") {
    return KernelRule::Direct;
  }
  if (name == "winograd") {
    return KernelRule::Winograd;
  }
  if (name == "reference") {
    return KernelRule::Reference;
  }
  if (name == "usual") {
    return KernelRule::Usual;
  }
  return std::nullopt;
}

std::vector<ConvolutionKernels> choose_kernels(const Network& network, KernelRule rule) {
  std::vector<ConvolutionKernels> kernels;
  for (int layer = 0; layer < network.size(); ++layer) {
    const bool convolves = applies(ConvolutionKernel::Direct, network, layer);
    kernels.push_back(convolves ? all_passes(kernel_by(rule, network, layer))
                                : ConvolutionKernels{});
  }
  while (!kernels.empty() && kernels.back() == ConvolutionKernels{}) {
    kernels.pop_back();
  }
  return kernels;
}

}  // namespace tessera::partitioner
