#include "engine/execution/transfer_probe.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/comm/bulk_transfers.h"
#include "engine/execution/repeated_timing.h"
#include "engine/ops/convolution.h"

namespace engine {

namespace {

// Such as a step has many of: 3x3 from 64 to 64 channels, 52x52 cells.
class Kernel {
 public:
  Kernel()
      : in_(partitioner::blocked_volume(kIn)),
        out_(partitioner::blocked_volume(kOut)),
        weight_(kChannels * shape().row()),
        scratch_(convolution_workspace(method(), kOut, kOut)) {
    std::fill_n(in_.data(), in_.size(), 1.0F);
    std::fill_n(weight_.data(), weight_.size(), 0.5F);
  }

  void compute() {
    convolution_forward<float>(method(),
                               View<const float>{in_.data(), kIn, block()},
                               {weight_.data()},
                               {View<float>{out_.data(), kOut, block()}, kOut},
                               scratch_.data());
  }

 private:
  static constexpr Index kChannels = 64;
  static constexpr Index kCells = 52;
  static constexpr Index kSize = 3;
  static constexpr Region kIn{{0, 1}, {0, kChannels}, {0, kCells + 2}, {0, kCells + 2}};
  static constexpr Region kOut{{0, 1}, {0, kChannels}, {0, kCells}, {0, kCells}};

  static Index block() { return partitioner::channel_block(kChannels); }
  static ConvolutionShape shape() { return {kChannels, kChannels, kSize, 1, 0, 1}; }
  static ConvolutionMethod method() {
    return {shape(), partitioner::all_passes(partitioner::ConvolutionKernel::Winograd4)};
  }

  Array<float> in_;
  Array<float> out_;
  Array<float> weight_;
  Array<float> scratch_;
};

double seconds_of(int calls, Kernel& kernel) {
  const double start = now_s();
  for (int call = 0; call < calls; ++call) {
    kernel.compute();
  }
  return now_s() - start;
}

}  // namespace

double measure_byte_s_of_kernels(const Communicator& communicator,
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
    return 0;
  }
  Kernel kernel;
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
    lost_s.push_back(seconds_of(calls, kernel) - calls * alone_s);
    transfers.wait(batch);
  }
  const double moved = 2 * std::max(1.0, static_cast<double>(received.size()));
  return std::max(0.0, median(lost_s)) / moved;
}

}  // namespace engine
