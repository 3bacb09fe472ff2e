#include "engine/execution/kernel_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "engine/layers/workspace.h"
#include "engine/random.h"

namespace engine {

namespace {

using partitioner::kImage;

constexpr int kTrials = 3;  // after one that does not count; the least counts

void fill_randomly(Array<float>& values, std::uint64_t seed) {
  for (Index i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(random_uniform(seed, 0, static_cast<std::uint64_t>(i)) - 0.5);
  }
}

template <class Work>
double least_seconds(Work work) {
  double least = std::numeric_limits<double>::infinity();
  work();
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
  }
  return least;
}

// One convolution of one rank, with buffers as they will be when it trains.
class Trial {
 public:
  Trial(const partitioner::Network& network, const partitioner::Plan& plan, int layer, int rank)
      : shape_(convolution_shape(network, layer)),
        tile_(plan.tile(layer, rank)),
        map_(whole_map(network, network.layer(layer).inputs[0], plan.batch)),
        has_data_gradient_(network.layer(layer).inputs[0] != kImage) {
    const auto& read = plan.read_from[static_cast<std::size_t>(rank)];
    in_ = Tensor<float>(plan.buffer(rank, read[static_cast<std::size_t>(layer)][0]).region);
    out_ = Tensor<float>(plan.buffer(rank, plan.producer(rank, layer)).region);
    if (has_data_gradient_) {
      in_gradient_ = Tensor<float>(in_.region());
    }
    weight_ = Array<float>(tile_.computed.channels.size() * shape_.row());
    weight_gradient_ = Array<float>(weight_.size());
    fill_randomly(in_.values(), 1);
    fill_randomly(out_.values(), 2);
    fill_randomly(weight_, 3);
  }

  // Seconds of the three passes by one kernel.
  [[nodiscard]] std::array<double, 3> seconds(ConvolutionKernel kernel) {
    const ConvolutionMethod method{shape_, partitioner::all_passes(kernel)};
    Array<float> scratch(
        convolution_workspace(method, tile_.computed.channels, tile_.backward, has_data_gradient_));
    float* workspace = scratch.data();
    const View<const float> in = std::as_const(in_).view();
    const View<const float> gradient = std::as_const(out_).view();
    const Index first = tile_.computed.channels.begin;
    const float* weight = weight_.data();
    return {least_seconds([&] {
              convolution_forward<float>(
                  method, in, weight, nullptr, {out_.view(), tile_.computed}, workspace);
            }),
            has_data_gradient_ ? least_seconds([&] {
              convolution_backward_data<float>(method,
                                               gradient,
                                               {weight, first},
                                               tile_.backward,
                                               {in_gradient_.view(), map_, true},
                                               workspace);
            })
                               : 0,
            least_seconds([&] {
              convolution_backward_weights<float>(
                  method, in, gradient, tile_.backward, first, weight_gradient_.data(), workspace);
            })};
  }

 private:
  ConvolutionShape shape_;
  partitioner::Tile tile_;
  Region map_;
  bool has_data_gradient_;
  Tensor<float> in_;
  Tensor<float> out_;
  Tensor<float> in_gradient_;
  Array<float> weight_;
  Array<float> weight_gradient_;
};

int busiest_rank(const partitioner::Plan& plan, int layer) {
  int busiest = 0;
  for (int rank = 1; rank < plan.ranks; ++rank) {
    if (plan.tile(layer, rank).computed.volume() > plan.tile(layer, busiest).computed.volume()) {
      busiest = rank;
    }
  }
  return busiest;
}

ConvolutionKernels fastest_of(const partitioner::Network& network,
                              const partitioner::Plan& plan,
                              int layer,
                              int rank) {
  ConvolutionKernels best;
  std::array<double, 3> least{};
  least.fill(std::numeric_limits<double>::infinity());
  Trial trial(network, plan, layer, rank);
  for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
    if (kernel == ConvolutionKernel::Reference || !applies(kernel, network, layer)) {
      continue;
    }
    const std::array<double, 3> seconds = trial.seconds(kernel);
    const std::array<ConvolutionKernel*, 3> passes{
        &best.forward, &best.backward_data, &best.backward_weights};
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      if (seconds[pass] < least[pass]) {
        least[pass] = seconds[pass];
        *passes[pass] = kernel;
      }
    }
  }
  return best;
}

}  // namespace

std::vector<ConvolutionKernels> fastest_kernels(const partitioner::Network& network,
                                                const partitioner::Plan& plan) {
  using Extents = std::array<Index, 6>;
  // Layers that are alike are tried once.
  std::map<std::pair<Extents, Extents>, ConvolutionKernels> known;
  std::vector<ConvolutionKernels> kernels;
  for (int layer = 0; layer < network.size(); ++layer) {
    kernels.emplace_back();
    const int rank = busiest_rank(plan, layer);
    const Region& computed = plan.tile(layer, rank).computed;
    if (!applies(ConvolutionKernel::Winograd4, network, layer) || computed.empty()) {
      continue;  // the direct kernels are the only ones
    }
    const ConvolutionShape shape = convolution_shape(network, layer);
    const bool reads_image = network.layer(layer).inputs[0] == kImage;
    const Extents what{shape.filters, shape.channels, shape.padding, reads_image ? 1 : 0, 0, 0};
    const Extents where{computed.images.size(),
                        computed.channels.size(),
                        computed.rows.size(),
                        computed.cols.size(),
                        computed.rows.begin % 4,
                        computed.cols.begin % 4};
    const auto found = known.find({what, where});
    kernels.back() = found != known.end() ? found->second : fastest_of(network, plan, layer, rank);
    known[{what, where}] = kernels.back();
  }
  while (!kernels.empty() && kernels.back() == ConvolutionKernels{}) {
    kernels.pop_back();
  }
  return kernels;
}

}  // namespace engine
