#include "engine/session/planning.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <malloc.h>
#include <set>
#include <utility>

#include "engine/comm/agreement.h"
#include "engine/comm/rank_equality.h"
#include "engine/layers/workspace.h"
#include "engine/session/memory_needs.h"
#include "partitioner/base/quantities.h"
#include "partitioner/cost/assumed_devices.h"
#include "partitioner/plan/plan_fingerprint.h"
#include "partitioner/plan/plan_size.h"
#include "partitioner/search/best_partition.h"

namespace tessera::engine {

using partitioner::ClusterProfile;
using partitioner::Partition;

namespace {

// The file of the profile; empty if there is none.
std::string profile_path(const PartitionRequest& request) {
  if (!request.cluster.empty()) {
    return request.cluster;
  }
  const char* hosts = std::getenv("HYDRA_HOST_FILE");  // NOLINT(concurrency-mt-unsafe)
  const std::string beside = hosts == nullptr ? "" : std::string(hosts) + ".cluster.toml";
  std::error_code error;
  return !beside.empty() && std::filesystem::exists(beside, error) ? beside : "";
}

ClusterProfile assumed_cluster(const PartitionRequest& request, int ranks) {
  ClusterProfile cluster = partitioner::assumed_devices(ranks);
  for (partitioner::DeviceProfile& device : cluster.devices) {
    device.memory_bytes = request.memory_limit_bytes.value_or(device.memory_bytes);
  }
  return cluster;
}

// Single layers other than convolutions take little.
Index convolution_scratch_bytes(const partitioner::Network& network,
                                int layer,
                                const partitioner::ConvolutionKernels& kernels,
                                const partitioner::Tile& tile,
                                bool training) {
  const partitioner::Operation& operation = network.layer(layer).operation;
  if (layer_traits(operation).rated_as != partitioner::RatedAs::Convolution ||
      tile.computed.empty()) {
    return 0;
  }
  return convolution_workspace(network, layer, kernels, tile, {.training = training}) *
         partitioner::MemoryOptions{}.scalar_bytes;
}

partitioner::WorkspaceNeeds workspace_needs(const partitioner::Network& network,
                                            const PartitionRequest& request,
                                            bool training) {
  partitioner::WorkspaceNeeds needs;
  needs.per_rank = [&network, training](const partitioner::Plan& plan) {
    return workspace_bytes_of_ranks(network, plan, training);
  };
  needs.per_layer = [&network, training](int layer,
                                         const partitioner::ConvolutionKernels& kernels,
                                         const partitioner::Tile& tile) {
    return convolution_scratch_bytes(network, layer, kernels, tile, training);
  };
  if (request.workspace_bytes) {
    needs.limited_kernels = [&network,
                             limit = *request.workspace_bytes](const partitioner::Plan& plan) {
      return kernels_within(network, plan, limit);
    };
  }
  return needs;
}

// The whole profile that there is, where it has so many devices.
std::optional<ClusterProfile> profile_with(const PartitionRequest& request, int ranks) {
  const std::string path = profile_path(request);
  if (path.empty()) {
    return std::nullopt;
  }
  ClusterProfile profile = partitioner::read_cluster_profile(path);
  return profile.size() < ranks ? std::nullopt : std::optional(std::move(profile));
}

}  // namespace

std::optional<int> profiled_devices(const PartitionRequest& request) {
  const std::string path = profile_path(request);
  return path.empty() ? std::nullopt
                      : std::optional(partitioner::read_cluster_profile(path).size());
}

std::optional<ClusterProfile> profiled_cluster(const PartitionRequest& request, int ranks) {
  const auto profile = profile_with(request, ranks);
  return profile ? std::optional(first_devices(*profile, ranks)) : std::nullopt;
}

std::vector<Index> profiled_program_bytes(const PartitionRequest& request, int ranks) {
  const auto profile = profile_with(request, ranks);
  return profile ? program_bytes(*profile) : std::vector<Index>{};
}

ClusterProfile described_cluster(const PartitionRequest& request,
                                 int ranks,
                                 const SessionObserver& observer) {
  const std::string path = profile_path(request);
  if (path.empty()) {
    ClusterProfile cluster = assumed_cluster(request, ranks);
    observer.warn(fmt::format(
        "no cluster profile: equal devices assumed, each as fast as a Raspberry Pi 3, with {} of "
        "memory, on links of {:.0f} Mbit/s; describe yours with --cluster",
        readable_bytes(cluster.device(0).memory_bytes),
        cluster.link.bytes_per_s * 8e-6));
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
                                          const PartitionRequest& request,
                                          const Workload& workload,
                                          int ranks) {
  partitioner::SearchOptions options;
  options.objective = request.objective.value_or(options.objective);
  options.batch = workload.batch;
  options.cost.passes = workload.passes;
  options.cost.has_loss = !losses(network).empty();
  options.cost.kept = workload.kept;
  options.cost.trained = workload.trained;
  options.kernels = choose_kernels(network, request.kernels.value_or(request.default_kernels));
  options.reader = requested_reader(request, ranks);
  options.gradient_reduction.compression =
      request.gradient_precision.value_or(options.gradient_reduction.compression);
  options.chooses_optimizer = workload.kept.is_on;
  options.memory.kept = workload.kept;
  options.memory.training = workload.training;
  options.memory.trained = workload.trained;
  options.memory.picture_batches = 1;
  options.memory.decoding_bytes = workload.decoding_bytes;
  options.memory.data_bytes = workload.data_bytes;
  options.memory.judging_bytes = workload.judging_bytes;
  options.workspace = workspace_needs(network, request, workload.training);
  options.memory_limit_bytes = request.memory_limit_bytes;
  return options;
}

partitioner::SearchOptions prediction_options(const partitioner::Network& network,
                                              const PartitionRequest& request,
                                              const Workload& workload,
                                              const Partition& partition) {
  return options_for(search_options(network, request, workload, partition.ranks), partition);
}

Partition search_automatically(const partitioner::Network& network,
                               const ClusterProfile& cluster,
                               const PartitionRequest& request,
                               const Workload& workload) {
  const partitioner::Replicas replicas = requested_replicas(request);
  return best_partition(
      network,
      cluster,
      search_options(network, request, workload, std::max(cluster.size() / replicas.count, 1)),
      replicas,
      workload.model);
}

void choose_optimizer(const partitioner::Network& network,
                      const ClusterProfile& cluster,
                      const PartitionRequest& request,
                      const Workload& workload,
                      Partition& partition) {
  if (!workload.kept.is_on || !request.file.empty()) {
    return;
  }
  const partitioner::SearchOptions options =
      prediction_options(network, request, workload, partition);
  partitioner::Candidate candidate = evaluated(network, cluster, options, partition);
  partition = with_best_optimizer(network, cluster, options, std::move(candidate)).partition;
}

void limit_workspace(const partitioner::Network& network,
                     const PartitionRequest& request,
                     Index batch,
                     Partition& partition) {
  if (request.workspace_bytes) {
    partition.kernels =
        kernels_within(network, make_plan(network, partition, batch), *request.workspace_bytes);
  }
}

Partition chosen_partition(const partitioner::Network& network,
                           const PartitionRequest& request,
                           int ranks,
                           Index batch) {
  Partition partition = requested_partition(network, request, ranks, batch);
  limit_workspace(network, request, batch, partition);
  return partition;
}

namespace {

void expect_same_plan(const partitioner::Network& network,
                      const Partition& partition,
                      Index batch,
                      const Communicator& communicator) {
  if (communicator.size() > 1) {
    const partitioner::Plan plan = make_plan(network, partition, batch);
    expect_same(fingerprint(plan), "plan of the same partition", communicator);
  }
}

}  // namespace

std::optional<bool> reads_before_search(const PartitionRequest& request,
                                        const Communicator& communicator) {
  if (!request.automatic) {
    return std::nullopt;
  }
  const partitioner::Reader reader =
      agreed(communicator, [&] { return requested_reader(request, communicator.size()); });
  return reader.reads(communicator.rank());
}

Partition agreed_partition(const partitioner::Network& network,
                           const PartitionRequest& request,
                           const Workload& workload,
                           const Communicator& communicator,
                           const SessionObserver& observer) {
  if (!request.automatic) {
    auto partition = agreed(communicator, [&] {
      return chosen_partition(network, request, communicator.size(), workload.batch);
    });
    expect_same(
        to_text(partition), request.file.empty() ? "partition" : request.file, communicator);
    if (workload.kept.is_on) {
      on_root(communicator, [&] {
        try {
          const ClusterProfile cluster = described_cluster(request, communicator.size(), {});
          choose_optimizer(network, cluster, request, workload, partition);
        } catch (const InputError&) {
          // A profile of other devices is a fault where a search needs it, and none here.
        }
      });
      auto& optimizer = partition.gradient_reduction.optimizer;
      optimizer = communicator.share(optimizer);
    }
    expect_same_plan(network, partition, workload.batch, communicator);
    return partition;
  }
  std::optional<std::string> text;
  on_root(communicator, [&] {
    if (!request.found.empty()) {
      const Partition found = partitioner::read_partition(request.found);
      validate(found, network, workload.batch, request.found);
      text = to_text(found);
      return;
    }
    partitioner::expect_plannable(network, communicator.size(), workload.batch);
    const auto cluster = described_cluster(request, communicator.size(), observer);
    text = to_text(search_automatically(network, cluster, request, workload));
    ::malloc_trim(0);  // of what the search freed, for what training takes
  });
  auto partition =
      partitioner::parse_partition(communicator.agree(text).value(), "--partition auto");
  expect_same_plan(network, partition, workload.batch, communicator);
  return partition;
}

void expect_exact_gradients(const Partition& partition, const std::string& command) {
  const partitioner::Compression& compression = partition.gradient_reduction.compression;
  if (compression != partitioner::Compression::Exact) {
    throw AgreedError(
        fmt::format("`{}` compares exact numbers, but the partition reduces gradients {}: remove "
                    "`precision = \"{}\"` from its [sums]",
                    command,
                    compression == partitioner::Compression::Half ? "in half precision"
                                                                  : "in compressed messages",
                    to_text(compression)));
  }
  if (partition.replicas.independent()) {
    throw AgreedError(
        fmt::format("`{}` compares exact numbers, but the replicas of the partition are "
                    "synchronised by {}: remove its [replicas]",
                    command,
                    to_text(partition.replicas.sync)));
  }
}

void warn_of_idle_ranks(const Partition& partition,
                        const Communicator& communicator,
                        const SessionObserver& observer) {
  const int idle = communicator.size() - static_cast<int>(busy_ranks(partition).size());
  if (idle > 0) {
    observer.warn(
        fmt::format("{} of {} ranks have no tile and stay idle", idle, communicator.size()),
        communicator);
  }
}

}  // namespace tessera::engine
