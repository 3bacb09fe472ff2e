// Which samples to move between devices before training, when each device trains on what lies on
// it: unequal amounts of data, devices and links (after Yang 2020, see README.md).
//
// What is minimized is the time of it all, move_s + epochs * epoch_s. An epoch takes as long as the
// slowest device does, max(seconds_per_sample * samples after moving). Moving takes as long as the
// busiest sender or receiver, max(bytes / rate), or the slowest pair that moves anything,
// latency + bytes / rate of the link, whichever is longest.

#pragma once

#include <string>
#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/cost_model.h"

namespace tessera::partitioner {

inline constexpr Index kMostSamples = Index{1} << 40U;  // of all devices together

struct BalanceDevice {
  Index samples = 0;              // before moving
  Index capacity = kMostSamples;  // that it can hold
  double seconds_per_sample = 1;  // of training; positive
  double send_bytes_per_s = kInfiniteRate;
  double receive_bytes_per_s = kInfiniteRate;
};

struct BalanceProblem {
  std::vector<BalanceDevice> devices;
  std::vector<LinkProfile> links;  // [from * devices + to]
  double sample_bytes = 0;
  double epochs = 1;
  Index shard = 1;  // samples that move together: each pair of devices moves whole shards

  [[nodiscard]] std::size_t size() const { return devices.size(); }
  [[nodiscard]] const LinkProfile& link(std::size_t from, std::size_t to) const {
    return links[from * size() + to];
  }
  [[nodiscard]] Index samples() const;  // of all devices
};

// The rates and links of a cluster's devices, without samples.
[[nodiscard]] BalanceProblem balance_problem(const ClusterProfile& cluster);

// Seconds of training that each device takes by itself for a sample, with these kernels, of steps
// of so many passes of `batch` samples each, by its profile.
[[nodiscard]] std::vector<double> seconds_per_sample(const Network& network,
                                                     const std::vector<ConvolutionKernels>& kernels,
                                                     const ClusterProfile& cluster,
                                                     Index batch,
                                                     const CostOptions& options);

// Throws InputError where the devices cannot hold the samples, moved in shards, or there are too
// many.
void expect_solvable(const BalanceProblem& problem);

struct SampleMove {
  int from = 0;
  int to = 0;
  Index count = 0;
  friend bool operator==(const SampleMove&, const SampleMove&) = default;
};

struct Balance {
  std::vector<SampleMove> moves;  // by `from`, then `to`
  double move_s = 0;
  double epoch_s = 0;
  double total_s = 0;
  double lower_bound_s = 0;  // no choice of moves takes less

  // 0: nothing is better.
  [[nodiscard]] double gap() const { return total_s > 0 ? (total_s - lower_bound_s) / total_s : 0; }
};

// Samples on each device after the moves.
[[nodiscard]] std::vector<Index> samples_after(const BalanceProblem& problem,
                                               const std::vector<SampleMove>& moves);

// What moves take; the lower bound is 0.
[[nodiscard]] Balance balance_of(const BalanceProblem& problem, std::vector<SampleMove> moves);

// The best moves. For a time of moving and of an epoch, whether any moves keep to both is a flow
// problem; the search over both times is branch and bound, whose bounds come from minimum cuts.
// After many flows it ends with the best moves so far; the gap says how good they are at least.
[[nodiscard]] Balance balance_exactly(const BalanceProblem& problem);

// Tries a series of epoch times; for each, devices with too many samples hand them over in the
// order of how long they would train, each to the receiver that has them first.
[[nodiscard]] Balance balance_greedily(const BalanceProblem& problem);

}  // namespace tessera::partitioner
