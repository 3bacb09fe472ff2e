#include "partitioner/balance/balance.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

Index BalanceProblem::samples() const {
  return std::accumulate(devices.begin(), devices.end(), Index{0}, [](Index sum, const auto& each) {
    return sum + each.samples;
  });
}

BalanceProblem balance_problem(const ClusterProfile& cluster) {
  BalanceProblem problem;
  for (const DeviceProfile& device : cluster.devices) {
    problem.devices.push_back({.send_bytes_per_s = device.send_bytes_per_s,
                               .receive_bytes_per_s = device.receive_bytes_per_s});
  }
  for (int from = 0; from < cluster.size(); ++from) {
    for (int to = 0; to < cluster.size(); ++to) {
      problem.links.push_back(cluster.between(from, to));
    }
  }
  return problem;
}

std::vector<double> seconds_per_sample(const Network& network,
                                       const std::vector<ConvolutionKernels>& kernels,
                                       const ClusterProfile& cluster,
                                       Index batch,
                                       const CostOptions& options) {
  Partition alone = single_tile(network);
  alone.kernels = kernels;
  std::vector<double> seconds;
  for (const DeviceProfile& device : cluster.devices) {
    ClusterProfile single;
    single.devices = {device};
    seconds.push_back(step_cost(network, alone, batch, single, options).total() /
                      static_cast<double>(batch * options.passes));
  }
  return seconds;
}

namespace {

// What a device has beyond whole shards stays there.
void expect_room_for_shards(const BalanceProblem& problem) {
  Index shards = 0;
  Index room = 0;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const BalanceDevice& device = problem.devices[i];
    const Index staying = device.samples % problem.shard;
    if (device.capacity < staying) {
      throw InputError(fmt::format(
          "device {} can hold {} samples, and {} of its {} stay where samples move in shards of {}",
          i,
          device.capacity,
          staying,
          device.samples,
          problem.shard));
    }
    shards += device.samples / problem.shard;
    room += (std::min(device.capacity, kMostSamples) - staying) / problem.shard;
  }
  if (room < shards) {
    throw InputError(
        fmt::format("the devices can hold {} whole shards of {} samples, and there are "
                    "{}: give a smaller --shard-size",
                    room,
                    problem.shard,
                    shards));
  }
}

}  // namespace

void expect_solvable(const BalanceProblem& problem) {
  Index samples = 0;
  Index capacity = 0;
  for (const BalanceDevice& device : problem.devices) {
    if (device.samples > kMostSamples - samples) {
      throw InputError(fmt::format("more than {} samples", kMostSamples));
    }
    samples += device.samples;
    capacity = std::min(kMostSamples, capacity + std::min(kMostSamples, device.capacity));
  }
  if (capacity < samples) {
    throw InputError(fmt::format(
        "the devices can hold {} samples together, and there are {}", capacity, samples));
  }
  expect_room_for_shards(problem);
}

std::vector<Index> samples_after(const BalanceProblem& problem,
                                 const std::vector<SampleMove>& moves) {
  std::vector<Index> samples;
  samples.reserve(problem.size());
  for (const BalanceDevice& device : problem.devices) {
    samples.push_back(device.samples);
  }
  for (const SampleMove& move : moves) {
    samples[static_cast<std::size_t>(move.from)] -= move.count;
    samples[static_cast<std::size_t>(move.to)] += move.count;
  }
  return samples;
}

Balance balance_of(const BalanceProblem& problem, std::vector<SampleMove> moves) {
  Balance balance;
  std::vector<double> sent(problem.size());
  std::vector<double> received(problem.size());
  for (const SampleMove& move : moves) {
    const auto from = static_cast<std::size_t>(move.from);
    const auto to = static_cast<std::size_t>(move.to);
    const double bytes = static_cast<double>(move.count) * problem.sample_bytes;
    const LinkProfile& link = problem.link(from, to);
    sent[from] += bytes;
    received[to] += bytes;
    balance.move_s = std::max(balance.move_s, link.latency_s + bytes / link.bytes_per_s);
  }
  const std::vector<Index> samples = samples_after(problem, moves);
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const BalanceDevice& device = problem.devices[i];
    balance.move_s = std::max({balance.move_s,
                               sent[i] / device.send_bytes_per_s,
                               received[i] / device.receive_bytes_per_s});
    balance.epoch_s =
        std::max(balance.epoch_s, device.seconds_per_sample * static_cast<double>(samples[i]));
  }
  balance.total_s = balance.move_s + problem.epochs * balance.epoch_s;
  balance.moves = std::move(moves);
  return balance;
}

}  // namespace tessera::partitioner
