#include "engine/cli/planning.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <malloc.h>
#include <utility>

#include "engine/cli/setup.h"
#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/layers/workspace.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/plan/plan_fingerprint.h"
#include "partitioner/plan/plan_size.h"
#include "partitioner/report/explain.h"
#include "partitioner/search/fitting.h"

namespace tessera::engine {

using partitioner::ClusterProfile;

namespace {

// Of the profile; empty if there is none.
std::string profile_path(const PartitionChoice& choice) {
  if (!choice.cluster.empty()) {
    return choice.cluster;
  }
  const char* hosts = std::getenv("HYDRA_HOST_FILE");  // NOLINT(concurrency-mt-unsafe)
  const std::string beside = hosts == nullptr ? "" : std::string(hosts) + ".cluster.toml";
  std::error_code error;
  return !beside.empty() && std::filesystem::exists(beside, error) ? beside : "";
}

ClusterProfile assumed_cluster(const PartitionChoice& choice, int ranks) {
  partitioner::EqualDevices numbers;
  numbers.count = ranks;
  if (choice.memory_limit_mib > 0) {
    numbers.memory_bytes = choice.memory_limit_mib << 20U;
  }
  return partitioner::equal_devices(numbers);
}

// Of single layers only convolutions count: others take little.
partitioner::WorkspaceNeeds workspace_needs(const partitioner::Network& network,
                                            std::vector<partitioner::ConvolutionKernels> kernels,
                                            bool training) {
  kernels.resize(network.layers.size());
  const auto of_layer = [&network, kernels = std::move(kernels), training](
                            int layer, const partitioner::Tile& tile) {
    if (!std::holds_alternative<partitioner::Convolution>(network.layer(layer).operation) ||
        tile.computed.empty()) {
      return Index{0};
    }
    const ConvolutionMethod method{convolution_shape(network, layer),
                                   kernels[static_cast<std::size_t>(layer)]};
    const partitioner::LayerSpec& spec = network.layer(layer);
    const bool to_data =
        spec.inputs[0] != partitioner::kImage && network.takes_gradient(spec.inputs[0]);
    const bool goes_back = training && spec.has_backward;
    return convolution_workspace(
               method, tile.computed, goes_back ? tile.backward : Region{}, to_data) *
           partitioner::MemoryOptions{}.scalar_bytes;
  };
  const auto of_ranks = [&network, training](const partitioner::Plan& plan) {
    return workspace_bytes_of_ranks(network, plan, training);
  };
  return {of_ranks, of_layer};
}

void say_assumption(const ClusterProfile& cluster) {
  warn(
      fmt::format("no cluster profile: equal devices assumed, each as fast as a Raspberry Pi 3, "
                  "with {} of memory, on links of 100 Mbit/s; describe yours with --cluster",
                  readable_bytes(cluster.device(0).memory_bytes)));
}

}  // namespace

std::optional<int> profiled_devices(const PartitionChoice& choice) {
  const std::string path = profile_path(choice);
  return path.empty() ? std::nullopt
                      : std::optional(partitioner::read_cluster_profile(path).size());
}

std::vector<Index> profiled_program_bytes(const PartitionChoice& choice, int ranks) {
  const std::string path = profile_path(choice);
  if (path.empty()) {
    return {};
  }
  const ClusterProfile profile = partitioner::read_cluster_profile(path);
  return profile.size() >= ranks ? program_bytes(profile) : std::vector<Index>{};
}

ClusterProfile described_cluster(const PartitionChoice& choice, int ranks) {
  const std::string path = profile_path(choice);
  if (path.empty()) {
    ClusterProfile cluster = assumed_cluster(choice, ranks);
    say_assumption(cluster);
    return cluster;
  }
  const ClusterProfile profile = partitioner::read_cluster_profile(path);
  if (profile.size() < ranks) {
    throw InputError(path,
                     0,
                     fmt::format("it describes {}, there are {}: describe the others too, or "
                                 "start fewer ranks",
                                 counted(profile.size(), "device"),
                                 counted(ranks, "rank")));
  }
  return first_devices(profile, ranks);
}

partitioner::SearchOptions search_options(const partitioner::Network& network,
                                          const PartitionChoice& choice,
                                          const Workload& workload,
                                          int ranks) {
  partitioner::SearchOptions options;
  options.objective =
      partitioner::objective_named(choice.objective).value_or(partitioner::Objective::Time);
  options.batch = workload.batch;
  options.cost.passes = workload.passes;
  options.cost.has_loss = !losses(network).empty();
  options.kernels = choose_kernels(
      network, partitioner::kernel_rule_named(choice.kernels).value_or(choice.default_kernels));
  options.reader = parse_reader(choice.reader, ranks);
  if (const auto compression = partitioner::compression_named(choice.gradient_precision)) {
    options.gradient_reduction.compression = *compression;
  }
  options.memory.training = workload.training;
  options.memory.adam = workload.adam;
  options.memory.picture_batches = 1;
  options.memory.decoding_bytes = workload.decoding_bytes;
  options.memory.data_bytes = workload.data_bytes;
  options.workspace = workspace_needs(network, options.kernels, workload.training);
  if (choice.memory_limit_mib > 0) {
    options.memory_limit_bytes = choice.memory_limit_mib << 20U;
  }
  return options;
}

partitioner::SearchOptions prediction_options(const partitioner::Network& network,
                                              const PartitionChoice& choice,
                                              const Workload& workload,
                                              const partitioner::Partition& partition) {
  partitioner::SearchOptions options = search_options(network, choice, workload, partition.ranks);
  options.kernels = partition.kernels;
  options.reader = partition.reader;
  options.gradient_reduction = partition.gradient_reduction;
  return options;
}

namespace {

// A search simulates only a few of the partitions that its model finds the best; what it is
// compared with, found by other rules, may turn out better.
partitioner::Candidate best_of_baselines(const partitioner::Network& network,
                                         const ClusterProfile& cluster,
                                         const partitioner::SearchOptions& options,
                                         partitioner::Candidate best) {
  constexpr double kWorthIt = 0.998;
  if (options.objective == partitioner::Objective::Memory ||
      !partitioner::is_simulable(network, cluster.size())) {
    return best;
  }
  const auto limits = memory_limits(cluster, options);
  const auto value = [&options](const partitioner::Candidate& candidate) {
    return objective_value(options.objective, candidate);
  };
  const auto challenge = [&](partitioner::Candidate baseline) {
    if (value(baseline) < kWorthIt * value(best) &&
        partitioner::largest_shortage(baseline.memory, limits).missing_bytes() <= 0) {
      best = std::move(baseline);
    }
  };
  partitioner::SearchOptions like = options;
  like.gradient_reduction = best.partition.gradient_reduction;
  for (const auto& [name, baseline] : simple_baselines(network, cluster, like, best.partition)) {
    challenge(evaluated(network, cluster, options, baseline));
  }
  return best;
}

// The fastest among the partitions that suit one of the replicas.
partitioner::Partition search_replicas(const partitioner::Network& network,
                                       const ClusterProfile& cluster,
                                       const PartitionChoice& choice,
                                       const Workload& workload,
                                       const partitioner::Replicas& replicas) {
  expect_even_replicas(replicas.count, cluster.size(), workload.batch);
  PartitionChoice of_one = choice;
  of_one.replicas = 0;
  of_one.sync.clear();
  Workload share = workload;
  share.batch = workload.batch / replicas.count;
  const int ranks = cluster.size() / replicas.count;
  std::optional<partitioner::ExplainedPlan> best;
  std::vector<partitioner::ClusterProfile> searched;
  for (int replica = 0; replica < replicas.count; ++replica) {
    const auto devices = devices_from(cluster, replica * ranks, ranks);
    if (std::find(searched.begin(), searched.end(), devices) != searched.end()) {
      continue;
    }
    searched.push_back(devices);
    const partitioner::Partition partition =
        replicated(search_automatically(network, devices, of_one, share), replicas, share.batch);
    validate(partition, network, workload.batch, "--replicas");
    const auto options = prediction_options(network, choice, workload, partition);
    auto plan = explained(network, cluster, options, partition);
    if (!best || (plan.fits && !best->fits) ||
        (plan.fits == best->fits && plan.time.step_s() < best->time.step_s())) {
      best = std::move(plan);
    }
  }
  return best->partition;
}

}  // namespace

void expect_known_powers(const ClusterProfile& cluster) {
  if (const auto device = partitioner::device_of_unknown_power(cluster)) {
    throw InputError(fmt::format(
        "the power of {} is unknown: `tessera probe --meter` measures it, or its profile names "
        "its kind, such as board = \"pi3b\"",
        printable(cluster.device(*device).name)));
  }
}

partitioner::SearchResult search_with_baselines(const partitioner::Network& network,
                                                const ClusterProfile& cluster,
                                                const PartitionChoice& choice,
                                                const Workload& workload) {
  expect_searchable(network, cluster.size(), workload.batch);
  partitioner::SearchOptions options = search_options(network, choice, workload, cluster.size());
  if (is_of_energy(options.objective)) {
    expect_known_powers(cluster);
  }
  for (;;) {
    partitioner::SearchResult result = search_partition(network, cluster, options);
    if (result.candidates.empty()) {
      return result;
    }
    partitioner::Candidate best =
        best_of_baselines(network, cluster, options, std::move(result.candidates.front()));
    limit_workspace(network, choice, workload.batch, best.partition);
    if (best.partition.kernels == options.kernels) {
      result.candidates = {std::move(best)};
      return result;
    }
    // What is best with kernels that take less scratch; each time around some take less.
    options.kernels = best.partition.kernels;
    options.workspace = workspace_needs(network, options.kernels, workload.training);
  }
}

partitioner::Partition search_automatically(const partitioner::Network& network,
                                            const ClusterProfile& cluster,
                                            const PartitionChoice& choice,
                                            const Workload& workload) {
  if (const partitioner::Replicas replicas = parse_replicas(choice); replicas.count > 1) {
    return search_replicas(network, cluster, choice, workload, replicas);
  }
  const partitioner::SearchResult result =
      search_with_baselines(network, cluster, choice, workload);
  if (result.candidates.empty()) {
    throw InputError(workload.model,
                     0,
                     why_nothing_fits(network,
                                      cluster,
                                      search_options(network, choice, workload, cluster.size()),
                                      result.smallest.value()));
  }
  return result.candidates.front().partition;
}

namespace {

void expect_same_plan(const partitioner::Network& network,
                      const partitioner::Partition& partition,
                      Index batch,
                      const Communicator& communicator) {
  if (communicator.size() > 1) {
    const partitioner::Plan plan = make_plan(network, partition, batch);
    expect_same(fingerprint(plan), "plan of the same partition", communicator);
  }
}

}  // namespace

std::optional<bool> reads_before_search(const PartitionChoice& choice,
                                        const Communicator& communicator) {
  if (!choice.automatic()) {
    return std::nullopt;
  }
  const partitioner::Reader reader =
      agreed(communicator, [&] { return parse_reader(choice.reader, communicator.size()); });
  return reader.reads(communicator.rank());
}

partitioner::Partition agreed_partition(const partitioner::Network& network,
                                        const PartitionChoice& choice,
                                        const Workload& workload,
                                        const Communicator& communicator) {
  if (!choice.automatic()) {
    auto partition = agreed(communicator, [&] {
      return choose_partition(network, choice, communicator.size(), workload.batch);
    });
    expect_same(to_text(partition), choice.file.empty() ? "partition" : choice.file, communicator);
    expect_same_plan(network, partition, workload.batch, communicator);
    return partition;
  }
  std::optional<std::string> text;
  on_root(communicator, [&] {
    const auto cluster = described_cluster(choice, communicator.size());
    text = to_text(search_automatically(network, cluster, choice, workload));
    ::malloc_trim(0);  // of what the search freed, for what training takes
  });
  auto partition =
      partitioner::parse_partition(communicator.agree(text).value(), "--partition auto");
  expect_same_plan(network, partition, workload.batch, communicator);
  return partition;
}

}  // namespace tessera::engine
