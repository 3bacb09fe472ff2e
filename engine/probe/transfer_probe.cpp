#include "engine/probe/transfer_probe.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/comm/bulk_transfers.h"
#include "engine/ops/convolution/convolution.h"
#include "engine/probe/probe_trials.h"
#include "engine/probe/repeated_timing.h"
#include "engine/probe/trial_arena.h"

namespace tessera::engine {

namespace {

// Such as a step has many of.
ConvolutionPoint usual_trial() {
  ConvolutionPoint trial;
  trial.kernel = partitioner::ConvolutionKernel::Winograd4;
  trial.channels = trial.filters = 64;
  trial.size = 3;
  trial.rows = trial.cols = 52;
  return trial;
}

class Kernel {
 public:
  explicit Kernel(const ConvolutionPoint& trial)
      : method_{trial_shape(trial), partitioner::all_passes(trial.kernel)},
        output_(trial_output(trial)),
        scratch_size_(convolution_workspace(method_, output_, output_)),
        arena_({blocked_volume(trial_input(trial)), blocked_volume(output_), scratch_size_}),
        in_(arena_.take(trial_input(trial))),
        out_(arena_.take(output_)),
        scratch_(arena_.take(scratch_size_)),
        weight_(trial.filters * method_.shape.row()) {
    std::fill_n(in_.data, blocked_volume(in_.region), 1.0F);
    std::fill_n(weight_.data(), weight_.size(), 0.5F);
  }

  void compute() {
    convolution_forward<float>(
        method_, View<const float>(in_), {weight_.data()}, {out_, output_}, scratch_);
  }

 private:
  ConvolutionMethod method_;
  Region output_;
  Index scratch_size_;
  TrialArena arena_;
  View<float> in_;
  View<float> out_;
  float* scratch_;
  Array<float> weight_;
};

double kernel_seconds(int calls, Kernel& kernel) {
  const double start = now_s();
  for (int call = 0; call < calls; ++call) {
    kernel.compute();
  }
  return now_s() - start;
}

}  // namespace

std::optional<double> measure_byte_s_of_kernels(const Communicator& communicator,
                                                double bytes_per_s,
                                                double seconds,
                                                bool by_wire) {
  constexpr int kRounds = 3;
  constexpr double kAlonePart = 0.25;
  constexpr double kWirePart = 0.25;
  constexpr double kMargin = 2;  // kernels have to last longer than messages
  constexpr double kMostBytes = 4 << 20U;
  BulkTransfers transfers(communicator, by_wire);
  if (!transfers.progresses()) {
    return std::nullopt;
  }
  Kernel kernel(usual_trial());
  communicator.barrier();
  const double alone_s = median_seconds(kAlonePart * seconds, [&] { kernel.compute(); });
  const double of_round = std::min(kWirePart * seconds * bytes_per_s / kRounds, kMostBytes);
  const int others = communicator.size() - 1;
  const auto bytes = static_cast<std::size_t>(of_round / others);
  const int calls = static_cast<int>(std::ceil(kMargin * of_round / bytes_per_s / alone_s));
  const std::vector<std::byte> sent(bytes);
  std::vector<std::byte> received(bytes * static_cast<std::size_t>(others));
  const std::span<std::byte> all(received);
  std::vector<double> lost_s;
  for (int round = 0; round < kRounds; ++round) {
    BulkTransfers::Batch batch;
    communicator.barrier();
    for (int i = 0; i < others; ++i) {
      const int peer = (communicator.rank() + 1 + i) % communicator.size();
      transfers.post_receive(batch, peer, all.subspan(bytes * static_cast<std::size_t>(i), bytes));
      transfers.post_send(batch, peer, sent);
    }
    lost_s.push_back(kernel_seconds(calls, kernel) - calls * alone_s);
    transfers.wait(batch);
  }
  const double moved = 2 * std::max(1.0, static_cast<double>(received.size()));
  return std::max(0.0, median(lost_s)) / moved;
}

}  // namespace tessera::engine
