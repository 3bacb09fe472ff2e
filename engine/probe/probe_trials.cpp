#include "engine/probe/probe_trials.h"

#include <algorithm>
#include <iterator>

#include "partitioner/base/layout.h"

namespace tessera::engine {

using partitioner::Network;

namespace {

constexpr partitioner::ConvolutionPass kPasses[] = {partitioner::ConvolutionPass::Forward,
                                                    partitioner::ConvolutionPass::BackwardData,
                                                    partitioner::ConvolutionPass::BackwardWeights};

bool computes(ConvolutionKernel kernel, const ConvolutionPoint& shape) {
  return partitioner::winograd_side(kernel) == 0 ||
         (shape.size == 3 && shape.stride == 1 && shape.groups == 1);
}

void add_by_each(const std::vector<ConvolutionKernel>& kernels,
                 ConvolutionPoint shape,
                 std::vector<ConvolutionPoint>& trials) {
  for (const ConvolutionKernel kernel : kernels) {
    shape.kernel = kernel;
    if (computes(kernel, shape) && std::find(trials.begin(), trials.end(), shape) == trials.end()) {
      trials.push_back(shape);
    }
  }
}

bool is_used(const partitioner::ConvolutionKernels& kernels, ConvolutionKernel kernel) {
  return kernels.forward == kernel || kernels.backward_data == kernel ||
         kernels.backward_weights == kernel;
}

// Those that are in use, or those that are not.
std::vector<ConvolutionKernel> those_used(const std::vector<ConvolutionKernel>& kernels,
                                          const partitioner::ConvolutionKernels& of_layer,
                                          bool wanted) {
  std::vector<ConvolutionKernel> result;
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(result), [&](auto kernel) {
    return is_used(of_layer, kernel) == wanted;
  });
  return result;
}

ConvolutionPoint square(Index channels, Index filters, Index size, Index side) {
  ConvolutionPoint point;
  point.channels = channels;
  point.filters = filters;
  point.size = size;
  point.rows = point.cols = side;
  return point;
}

// A share of a layer.
struct Share {
  Index parts = 1;         // its map is cut into parts x parts tiles
  Index filter_parts = 1;  // and its filters into whole blocks
};

// Tiles of all layers before larger ones, filters of few layers after their tiles: what a small
// tile takes for each filter and for its input comes from both.
constexpr Share kShares[] = {{4, 1}, {2, 1}, {2, 3}, {1, 3}, {1, 1}};

// Fewer filters are hardly ever cut.
constexpr Index kFiltersToCut = 256;

// One layer's.
ConvolutionPoint tile_of(const Network& network, int layer, const Share& share) {
  const partitioner::LayerSpec& spec = network.layer(layer);
  const auto& convolution = std::get<partitioner::Convolution>(spec.operation);
  ConvolutionPoint point;
  point.channels = network.shape(spec.inputs[0]).channels;
  const Index block = channel_block(convolution.filters);
  const Index blocks = (convolution.filters + block - 1) / block;
  point.filters =
      std::min(convolution.filters, (blocks + share.filter_parts - 1) / share.filter_parts * block);
  point.size = convolution.size.rows;
  point.stride = convolution.stride.rows;
  point.groups = convolution.groups;
  point.rows = (spec.output.rows + share.parts - 1) / share.parts;
  point.cols = (spec.output.cols + share.parts - 1) / share.parts;
  return point;
}

// Points of a profile are square: others are interpolated between them.
bool has_share(const Network& network, int layer, const Share& share) {
  if (!applies(ConvolutionKernel::Direct, network, layer)) {
    return false;
  }
  const auto& convolution = std::get<partitioner::Convolution>(network.layer(layer).operation);
  const bool square = convolution.size.is_square() && convolution.stride.is_square();
  return square && (share.filter_parts == 1 ||
                    (convolution.groups == 1 && convolution.filters >= kFiltersToCut));
}

}  // namespace

std::vector<ConvolutionPoint> common_trials() {
  std::vector<ConvolutionPoint> trials;
  add_by_each(
      {ConvolutionKernel::Direct, ConvolutionKernel::Winograd4}, square(64, 64, 3, 28), trials);
  return trials;
}

std::vector<ConvolutionPoint> standard_trials(const std::vector<ConvolutionKernel>& kernels) {
  std::vector<ConvolutionPoint> trials;
  add_by_each(kernels, square(64, 128, 1, 28), trials);
  add_by_each(kernels, square(3, 32, 3, 56), trials);
  ConvolutionPoint depthwise = square(128, 128, 3, 28);
  depthwise.groups = depthwise.channels;
  add_by_each(kernels, depthwise, trials);
  for (const Index channels : {16, 32, 128, 256, 512}) {
    const Index side = std::max<Index>(896 / channels, 7);
    add_by_each(kernels, square(channels, channels, 3, side), trials);
  }
  ConvolutionPoint strided = square(64, 128, 3, 14);
  strided.stride = 2;
  add_by_each(kernels, strided, trials);
  add_by_each(kernels, square(512, 256, 1, 14), trials);
  return trials;
}

std::vector<ConvolutionPoint> model_trials(const Network& network,
                                           const std::vector<ConvolutionKernel>& kernels) {
  const auto usual = choose_kernels(network, partitioner::KernelRule::Usual);
  std::vector<ConvolutionPoint> trials;
  for (const bool wanted : {true, false}) {
    for (const Share& share : kShares) {
      for (int layer = 0; layer < network.size(); ++layer) {
        if (has_share(network, layer, share)) {
          const auto& of_layer = usual[static_cast<std::size_t>(layer)];
          add_by_each(
              those_used(kernels, of_layer, wanted), tile_of(network, layer, share), trials);
        }
      }
    }
  }
  return trials;
}

ConvolutionShape trial_shape(const ConvolutionPoint& trial) {
  return {trial.filters, trial.channels, trial.size, trial.stride, 0, trial.groups};
}

Region trial_output(const ConvolutionPoint& trial) {
  return measured_task(trial, partitioner::ConvolutionPass::Forward).output;
}

Region trial_input(const ConvolutionPoint& trial) {
  return measured_task(trial, partitioner::ConvolutionPass::Forward).input;
}

double trial_flops(const ConvolutionPoint& trial, partitioner::ConvolutionPass pass) {
  return partitioner::counted_flops(measured_task(trial, pass));
}

double trial_flops(const ConvolutionPoint& trial) {
  double flops = 0;
  for (const auto pass : kPasses) {
    flops += trial_flops(trial, pass);
  }
  return flops;
}

Index trial_bytes(const ConvolutionPoint& trial) {
  const ConvolutionShape shape = trial_shape(trial);
  const ConvolutionMethod method{shape, partitioner::all_passes(trial.kernel)};
  const Region output = trial_output(trial);
  const Index scalars = 2 * blocked_volume(trial_input(trial)) + blocked_volume(output) +
                        2 * trial.filters * shape.row() +
                        convolution_workspace(method, output, output);
  return scalars * static_cast<Index>(sizeof(float));
}

TrialChoice choose_trials(const std::vector<ConvolutionPoint>& wanted, const TrialLimits& limits) {
  TrialChoice choice;
  double left_s = limits.seconds;
  for (const ConvolutionPoint& trial : wanted) {
    const bool winograd = partitioner::winograd_side(trial.kernel) > 0;
    const double rate = winograd ? limits.winograd_flops_per_s : limits.direct_flops_per_s;
    const double needed_s = 2 * trial_flops(trial) / rate;
    if (needed_s > left_s || trial_bytes(trial) > limits.bytes) {
      choice.left_out.push_back(trial);
      continue;
    }
    choice.chosen.push_back(trial);
    left_s -= needed_s;
  }
  return choice;
}

}  // namespace tessera::engine
