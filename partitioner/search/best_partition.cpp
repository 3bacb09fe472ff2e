#include "partitioner/search/best_partition.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/plan/plan_size.h"
#include "partitioner/search/baselines.h"
#include "partitioner/search/explained_plan.h"
#include "partitioner/search/fitting.h"

namespace tessera::partitioner {

namespace {

// A search simulates only a few of the partitions that its model finds the best; what it is
// compared with, found by other rules, may turn out better.
Candidate best_of_baselines(const Network& network,
                            const ClusterProfile& cluster,
                            const SearchOptions& options,
                            Candidate best) {
  constexpr double kWorthIt = 0.998;
  if (options.objective == Objective::Memory || !is_simulable(network, cluster.size())) {
    return best;
  }
  const auto limits = memory_limits(cluster, options);
  const auto value = [&options](const Candidate& candidate) {
    return objective_value(options.objective, candidate);
  };
  SearchOptions like = options;
  like.gradient_reduction = best.partition.gradient_reduction;
  for (const auto& [name, baseline] : simple_baselines(network, cluster, like, best.partition)) {
    Candidate challenger = evaluated(network, cluster, options, baseline);
    if (value(challenger) < kWorthIt * value(best) &&
        largest_shortage(challenger.memory, limits).missing_bytes() <= 0) {
      best = std::move(challenger);
    }
  }
  return best;
}

// That suits all devices together.
Partition best_whole(const Network& network,
                     const ClusterProfile& cluster,
                     const SearchOptions& options,
                     const std::string& model) {
  const SearchResult result = search_with_baselines(network, cluster, options);
  if (result.candidates.empty()) {
    const Candidate& smallest = result.smallest.value();
    throw NothingFits(
        model, why_nothing_fits(network, cluster, options, smallest), smallest.partition);
  }
  return result.candidates.front().partition;
}

}  // namespace

SearchResult search_with_baselines(const Network& network,
                                   const ClusterProfile& cluster,
                                   SearchOptions options) {
  expect_searchable(network, cluster.size(), options.batch);
  if (is_of_energy(options.objective)) {
    expect_known_powers(cluster);
  }
  for (;;) {
    SearchResult result = search_partition(network, cluster, options);
    if (result.candidates.empty()) {
      return result;
    }
    Candidate best =
        best_of_baselines(network, cluster, options, std::move(result.candidates.front()));
    const bool is_planned = is_plannable(network, cluster.size(), options.batch);
    if (options.workspace.limited_kernels && is_planned) {  // else tiles are small, and scratch too
      best.partition.kernels =
          options.workspace.limited_kernels(make_plan(network, best.partition, options.batch));
    }
    if (best.partition.kernels == options.kernels) {
      result.candidates = {std::move(best)};
      return result;
    }
    // What is best with kernels that take less scratch; each time around some take less.
    options.kernels = best.partition.kernels;
  }
}

Partition best_partition(const Network& network,
                         const ClusterProfile& cluster,
                         const SearchOptions& options,
                         const Replicas& replicas,
                         const std::string& model) {
  if (replicas.count == 1) {
    return best_whole(network, cluster, options, model);
  }
  expect_even_replicas(replicas.count, cluster.size(), options.batch);
  SearchOptions share = options;
  share.batch = options.batch / replicas.count;
  share.chooses_optimizer = false;  // replicas may have parameters of their own
  const int ranks = cluster.size() / replicas.count;
  std::optional<ExplainedPlan> best;
  std::vector<ClusterProfile> searched;
  for (int replica = 0; replica < replicas.count; ++replica) {
    const ClusterProfile devices = devices_from(cluster, replica * ranks, ranks);
    if (std::find(searched.begin(), searched.end(), devices) != searched.end()) {
      continue;
    }
    searched.push_back(devices);
    const Partition partition =
        replicated(best_whole(network, devices, share, model), replicas, share.batch);
    validate(partition, network, options.batch, "--replicas");
    ExplainedPlan plan = explained(network, cluster, options_for(options, partition), partition);
    if (!best || (plan.fits && !best->fits) ||
        (plan.fits == best->fits && plan.time.step_s() < best->time.step_s())) {
      best = std::move(plan);
    }
  }
  return best->partition;
}

SearchOptions options_for(SearchOptions options, const Partition& partition) {
  options.kernels = partition.kernels;
  options.reader = partition.reader;
  options.gradient_reduction = partition.gradient_reduction;
  return options;
}

}  // namespace tessera::partitioner
