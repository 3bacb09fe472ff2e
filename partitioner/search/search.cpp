#include "partitioner/search/search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/search/memory_search.h"
#include "partitioner/search/partition_figures.h"
#include "partitioner/search/partition_search.h"

namespace tessera::partitioner {

namespace {

constexpr Index kBucketBytes[] = {
    Index{1} << 16U, Index{1} << 18U, Index{1} << 20U, Index{1} << 23U};
constexpr double kHidden[] = {0.25, 0.5, 0.75, 1};  // shares of what may travel while ranks compute
constexpr double kWorthIt = 0.998;                  // of a step, for another size of buckets
constexpr int kLowerLimits = 2;                     // that are searched as well

// The next of a fixed series of limits, eight to each factor of two.
Index next_lower_limit(Index bytes) {
  constexpr double kPerFactorOfTwo = 8;
  const double place = std::ceil(kPerFactorOfTwo * std::log2(static_cast<double>(bytes))) - 1;
  return static_cast<Index>(std::exp2(place / kPerFactorOfTwo));
}

// One search: what fits, what is fastest, what takes least.
class Planner {
 public:
  // So many lower limits of memory are searched as well.
  Planner(const Network& network,
          const ClusterProfile& cluster,
          const SearchOptions& options,
          int lower_limits = kLowerLimits)
      : network_(network),
        cluster_(cluster),
        options_(options),
        lower_limits_(lower_limits),
        figures_(network, cluster, options) {}

  SearchResult run() {
    PartitionSearch by_time(network_, cluster_, options_, {});
    const std::vector<Partition> fastest =
        by_time.cheapest({}, static_cast<std::size_t>(options_.candidates));
    expects(!fastest.empty(), "one device can do it all");
    MemorySearch memory(
        network_, cluster_, options_, figures_, figures_.seconds_of(fastest.front()));
    SearchResult result;
    result.effort = by_time.effort();
    const std::vector<Partition> partitions = choose(fastest, by_time, memory);
    memory.add_to(result.effort);
    result.candidates = evaluated_by_time(partitions);
    tune_buckets(result.candidates);
    if (!figures_.fits(partitions.front())) {
      result.smallest = std::move(result.candidates.front());
      result.candidates.clear();
    }
    return result;
  }

 private:
  // What to compare; where nothing fits, the smallest that was found.
  std::vector<Partition> choose(const std::vector<Partition>& fastest,
                                PartitionSearch& by_time,
                                MemorySearch& memory) {
    std::vector<Partition> partitions = fastest;
    std::erase_if(partitions, [this](const Partition& of) { return !figures_.fits(of); });
    if (options_.objective == Objective::Memory) {
      return fastest_of_smallest(memory.smallest(fastest.front()));
    }
    if (partitions.empty() || partitions.front() != fastest.front()) {
      partitions = memory.under_limits(std::move(partitions));
      if (partitions.empty()) {
        partitions = memory.small_ones(fastest.front());
      }
      if (options_.memory_limit_bytes && lower_limits_ > 0 && memory.has_time_for_more()) {
        add_lower_limits(partitions);
      }
    }
    if (partitions.empty()) {
      return {memory.smallest(fastest.front())};
    }
    add_hiding(by_time, partitions);
    if (memory.single_layers() != nullptr) {
      add_hiding(*memory.single_layers(), partitions);
    }
    return partitions;
  }

  std::vector<Candidate> evaluated_by_time(const std::vector<Partition>& partitions) const {
    std::vector<Candidate> candidates;
    candidates.reserve(partitions.size());
    for (const Partition& partition : partitions) {
      candidates.push_back(evaluated(network_, cluster_, options_, partition));
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.predicted_s() < b.predicted_s();
    });
    return candidates;
  }

  // Searches under limits are not exact: one under a lower limit may find what is faster.
  void add_lower_limits(std::vector<Partition>& partitions) {
    SearchOptions lower = options_;
    for (int i = 0; i < lower_limits_; ++i) {
      lower.memory_limit_bytes = next_lower_limit(*lower.memory_limit_bytes);
      add_candidates(Planner(network_, cluster_, lower, 0).run(), partitions);
    }
    figures_.sort_by_time(partitions);
  }

  // The fastest of those that take no more than the smallest.
  std::vector<Partition> fastest_of_smallest(const Partition& least) {
    SearchOptions tight = options_;
    tight.objective = Objective::Time;
    tight.memory_limit_bytes = evaluated(network_, cluster_, options_, least).most_bytes();
    std::vector<Partition> partitions = {least};
    add_candidates(Planner(network_, cluster_, tight, 0).run(), partitions);
    return partitions;
  }

  static void add_candidates(SearchResult found, std::vector<Partition>& partitions) {
    for (Candidate& candidate : found.candidates) {
      partitions.push_back(std::move(candidate.partition));
    }
  }

  // Adds what is fastest if some or all of what can hides, where a simulation will tell how much
  // does.
  void add_hiding(PartitionSearch& by_time, std::vector<Partition>& partitions) {
    if (!is_simulable(network_, cluster_.size())) {
      return;
    }
    const auto most = static_cast<std::size_t>(options_.candidates);
    for (const double hidden : kHidden) {
      for (Partition& partition : by_time.cheapest({}, most, hidden)) {
        const bool known =
            std::find(partitions.begin(), partitions.end(), partition) != partitions.end();
        if (!known && figures_.fits(partition)) {
          partitions.push_back(std::move(partition));
        }
      }
    }
  }

  // How many bytes travel together changes what hides behind what, not what is sent: so it is
  // looked for once the rest is decided, where a simulation will tell; then whether another of the
  // candidates is faster so.
  void tune_buckets(std::vector<Candidate>& candidates) {
    if (!candidates.front().simulated_s || options_.objective != Objective::Time) {
      return;
    }
    const auto challenge = [&](Partition partition, Index bucket_bytes) {
      Candidate& best = candidates.front();
      partition.gradient_reduction.bucket_bytes = bucket_bytes;
      if (partition != best.partition && figures_.fits(partition)) {
        Candidate tuned = evaluated(network_, cluster_, options_, partition);
        if (tuned.predicted_s() < kWorthIt * best.predicted_s()) {
          best = std::move(tuned);
        }
      }
    };
    for (const Index bytes : kBucketBytes) {
      challenge(candidates.front().partition, bytes);
    }
    const Index tuned = candidates.front().partition.gradient_reduction.bucket_bytes;
    for (std::size_t other = 1;
         other < candidates.size() && tuned != options_.gradient_reduction.bucket_bytes;
         ++other) {
      challenge(candidates[other].partition, tuned);
    }
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  int lower_limits_;
  PartitionFigures figures_;
};

}  // namespace

Index Candidate::most_bytes() const {
  Index most = 0;
  for (const MemoryUse& use : memory) {
    most = std::max(most, use.total());
  }
  return most;
}

namespace {

std::vector<MemoryUse> memory_of(const Network& network,
                                 const ClusterProfile& cluster,
                                 const SearchOptions& options,
                                 const Plan& plan) {
  const std::vector<Index> workspace =
      options.workspace.of_ranks ? options.workspace.of_ranks(plan) : std::vector<Index>{};
  return planned_memory_of_ranks(network, plan, options.memory, workspace, program_bytes(cluster));
}

}  // namespace

std::vector<MemoryUse> searched_memory(const Network& network,
                                       const ClusterProfile& cluster,
                                       const SearchOptions& options,
                                       const Partition& partition) {
  return memory_of(network, cluster, options, make_plan(network, partition, options.batch));
}

Candidate evaluated(const Network& network,
                    const ClusterProfile& cluster,
                    const SearchOptions& options,
                    const Partition& partition) {
  Candidate candidate;
  candidate.partition = partition;
  candidate.modelled_s =
      step_cost(network, partition, options.batch, cluster, options.cost).total();
  const bool simulates = is_simulable(network, cluster.size());
  if (simulates || options.counts_memory) {
    const Plan plan = make_plan(network, partition, options.batch);
    if (simulates) {
      candidate.simulated_s =
          simulate(priced_step(network, plan, cluster, options.cost), cluster).step_s;
    }
    if (options.counts_memory) {
      candidate.memory = memory_of(network, cluster, options, plan);
    }
  }
  return candidate;
}

std::vector<Index> memory_limits(const ClusterProfile& cluster, const SearchOptions& options) {
  std::vector<Index> limits;
  limits.reserve(cluster.devices.size());
  for (const DeviceProfile& device : cluster.devices) {
    limits.push_back(
        std::min(device.memory_bytes, options.memory_limit_bytes.value_or(device.memory_bytes)));
  }
  return limits;
}

SearchResult search_partition(const Network& network,
                              const ClusterProfile& cluster,
                              const SearchOptions& options) {
  expects(network.size() > 0 && cluster.size() > 0, "something to do, and someone to do it");
  return Planner(network, cluster, options).run();
}

}  // namespace tessera::partitioner
