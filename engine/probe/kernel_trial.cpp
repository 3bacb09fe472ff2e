#include "engine/probe/kernel_trial.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/base/random.h"
#include "engine/layers/workspace.h"
#include "engine/probe/trial_arena.h"

namespace tessera::engine {

namespace {

using partitioner::kImage;

constexpr int kTrials = 3;  // after one that does not count; the least counts

void fill_randomly(float* values, Index count, std::uint64_t seed) {
  for (Index i = 0; i < count; ++i) {
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

bool makes_data_gradient(const partitioner::Network& network, int layer) {
  const int input = network.layer(layer).inputs[0];
  return input != kImage && network.takes_gradient(input);
}

// One convolution of one rank, with buffers as they will be when it trains.
class Trial {
 public:
  Trial(const partitioner::Network& network, const partitioner::Plan& plan, int layer, int rank)
      : shape_(convolution_shape(network, layer)),
        tile_(plan.tile(layer, rank)),
        map_(whole_map(network, network.layer(layer).inputs[0], plan.batch)),
        has_data_gradient_(makes_data_gradient(network, layer)),
        has_weights_gradient_(network.layer(layer).has_backward) {
    const auto& read = plan.read_from[static_cast<std::size_t>(rank)];
    const Region& input = plan.buffer(rank, read[static_cast<std::size_t>(layer)][0]).region;
    const Region& output = plan.buffer(rank, plan.producer(rank, layer)).region;
    for (const ConvolutionKernel kernel : partitioner::kConvolutionKernels) {
      if (applies(kernel, network, layer)) {
        scratch_size_ = std::max(scratch_size_, workspace_of(kernel));
      }
    }
    const Index in_size = blocked_volume(input);
    const Index out_size = blocked_volume(output);
    arena_.emplace(std::vector<Index>{in_size, out_size, in_size, scratch_size_});
    in_ = arena_->take(input);
    out_ = arena_->take(output);
    in_gradient_ = arena_->take(input);
    scratch_ = arena_->take(scratch_size_);
    weight_ = Array<float>(tile_.computed.channels.size() * shape_.row());
    weight_gradient_ = Array<float>(weight_.size());
    fill_randomly(in_.data, in_size, 1);
    fill_randomly(out_.data, out_size, 2);
    fill_randomly(weight_.data(), weight_.size(), 3);
  }

  // Seconds of the three passes by one kernel.
  [[nodiscard]] std::array<double, 3> seconds(ConvolutionKernel kernel) {
    const ConvolutionMethod method{shape_, partitioner::all_passes(kernel)};
    const View<const float> in = in_;
    const View<const float> gradient = out_;
    const Index first = tile_.computed.channels.begin;
    const float* weight = weight_.data();
    return {least_seconds([&] {
              convolution_forward<float>(method, in, {weight}, {out_, tile_.computed}, scratch_);
            }),
            has_data_gradient_ ? least_seconds([&] {
              convolution_backward_data<float>(method,
                                               gradient,
                                               {weight, first},
                                               tile_.backward,
                                               {in_gradient_, map_, true},
                                               scratch_);
            })
                               : 0,
            has_weights_gradient_ ? least_seconds([&] {
              convolution_backward_weights<float>(
                  method, in, gradient, tile_.backward, {weight_gradient_.data(), first}, scratch_);
            })
                                  : 0};
  }

 private:
  [[nodiscard]] Index workspace_of(ConvolutionKernel kernel) const {
    return convolution_workspace({shape_, partitioner::all_passes(kernel)},
                                 tile_.computed,
                                 tile_.backward,
                                 has_data_gradient_);
  }

  ConvolutionShape shape_;
  partitioner::Tile tile_;
  Region map_;
  bool has_data_gradient_;
  bool has_weights_gradient_;
  Index scratch_size_ = 0;
  std::optional<TrialArena> arena_;
  View<float> in_;
  View<float> out_;
  View<float> in_gradient_;
  float* scratch_ = nullptr;
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
    const Extents what{shape.filters,
                       shape.channels,
                       shape.padding.rows,
                       makes_data_gradient(network, layer) ? 0 : 1,
                       network.layer(layer).has_backward ? 0 : 1,
                       0};
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

}  // namespace tessera::engine
