#include "partitioner/search/search.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/plan/plan_size.h"
#include "partitioner/search/fitting.h"
#include "partitioner/search/group_memory.h"
#include "partitioner/search/memory_search.h"
#include "partitioner/search/partition_figures.h"
#include "partitioner/search/partition_search.h"
#include "partitioner/search/search_space.h"
#include "partitioner/search/shortlist.h"

namespace tessera::partitioner {

namespace {

constexpr Index kBucketBytes[] = {
    Index{1} << 16U, Index{1} << 18U, Index{1} << 20U, Index{1} << 23U};
constexpr double kHidden[] = {0.25, 0.5, 0.75, 1};  // shares of what may travel while ranks compute
constexpr double kWorthIt = 0.998;  // of a step, for another size of buckets, or more state
constexpr int kLowerLimits = 2;     // that are searched as well

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
        figures_(network, cluster, options),
        shortlists_(network, cluster, options, figures_) {}

  SearchResult run() {
    expects(!is_of_energy(options_.objective) || !device_of_unknown_power(cluster_),
            "the power of each device is known");
    PartitionSearch by_time(network_, cluster_, options_, {}, shortlists_.within(1));
    const std::vector<Partition> fastest =
        by_time.cheapest({}, static_cast<std::size_t>(options_.candidates));
    expects(!fastest.empty(), "one device can do it all");
    MemorySearch memory(
        network_, cluster_, options_, figures_, shortlists_, figures_.seconds_of(fastest.front()));
    SearchResult result;
    result.effort = by_time.effort();
    const std::vector<Partition> partitions = choose(fastest, by_time, memory);
    memory.add_to(result.effort);
    result.candidates = evaluated_by_time(partitions);
    tune_buckets(result.candidates);
    result.candidates.front() =
        with_best_optimizer(network_, cluster_, options_, std::move(result.candidates.front()));
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
    std::erase_if(partitions,
                  [this](const Partition& partition) { return !figures_.fits(partition); });
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
    add_frugal(by_time, partitions);
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
    std::stable_sort(candidates.begin(), candidates.end(), [this](const auto& a, const auto& b) {
      return value_of(a) < value_of(b);
    });
    return candidates;
  }

  [[nodiscard]] double value_of(const Candidate& candidate) const {
    return objective_value(options_.objective, candidate);
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
        add_new(std::move(partition), partitions);
      }
    }
  }

  // Adds what takes little time, and little energy, on the fastest 1, 2, ... devices alone, and on
  // those alone that take the least energy for the same work: the others idle meanwhile, at the
  // price of a second. The least of joules * seconds is where a part of the time saves as large a
  // part of the energy: there a second is worth as many joules as are taken in it besides.
  void add_frugal(PartitionSearch& by_time, std::vector<Partition>& partitions) {
    if (!is_of_energy(options_.objective)) {
      return;
    }
    const std::vector<double> speeds = device_speeds(network_, options_.kernels, cluster_);
    std::vector<double> work_per_joule;
    for (int device = 0; device < cluster_.size(); ++device) {
      const PowerProfile power = known_power(cluster_.device(device)).value();
      constexpr double kLeast = 1e-9;
      work_per_joule.push_back(speeds[static_cast<std::size_t>(device)] /
                               std::max(power.busy_w.back(), kLeast));
    }
    std::set<std::vector<int>> searched;
    for (const std::vector<int>& order : {by_speed(speeds), by_speed(work_per_joule)}) {
      std::vector<int> devices;
      double second_j = 0;
      for (const int device : order) {
        devices.insert(std::upper_bound(devices.begin(), devices.end(), device), device);
        const PowerProfile power = known_power(cluster_.device(device)).value();
        second_j += power.idle_w;
        second_j += options_.objective == Objective::EnergyDelay ? power.busy_w.back() : 0;
        if (searched.insert(devices).second) {
          add_frugal_of(devices, second_j, by_time, partitions);
        }
      }
    }
  }

  void add_frugal_of(const std::vector<int>& devices,
                     double second_j,
                     PartitionSearch& by_time,
                     std::vector<Partition>& partitions) {
    constexpr std::size_t kMost = 2;
    const EnergyPrice price{second_j, 1};
    if (std::ssize(devices) == cluster_.size()) {
      for (Partition& partition : by_time.cheapest({}, kMost, 0, price)) {
        add_new(std::move(partition), partitions);
      }
      return;
    }
    SearchOptions part_options = options_;
    if (const auto single = options_.reader.single_rank()) {
      const auto reader = std::find(devices.begin(), devices.end(), *single);
      if (reader == devices.end()) {
        return;
      }
      part_options.reader = Reader::rank(static_cast<int>(reader - devices.begin()));
    }
    const ClusterProfile part = devices_of(cluster_, devices);
    PartitionSearch search(network_, part, part_options, {});
    for (const EnergyPrice& each : {EnergyPrice{}, price}) {
      for (const Partition& partition : search.cheapest({}, kMost, 0, each)) {
        add_new(on_ranks(partition, devices, cluster_.size()), partitions);
      }
    }
  }

  void add_new(Partition partition, std::vector<Partition>& partitions) {
    const bool known =
        std::find(partitions.begin(), partitions.end(), partition) != partitions.end();
    if (!known && figures_.fits(partition)) {
      partitions.push_back(std::move(partition));
    }
  }

  // How many bytes travel together changes what hides behind what, not what is sent: so it is
  // looked for once the rest is decided, where a simulation will tell; then whether another of the
  // candidates is faster so.
  void tune_buckets(std::vector<Candidate>& candidates) {
    if (!candidates.front().simulated_s || options_.objective == Objective::Memory) {
      return;
    }
    const auto challenge = [&](Partition partition, Index bucket_bytes) {
      Candidate& best = candidates.front();
      partition.gradient_reduction.bucket_bytes = bucket_bytes;
      if (partition != best.partition && figures_.fits(partition)) {
        Candidate tuned = evaluated(network_, cluster_, options_, partition);
        if (value_of(tuned) < kWorthIt * value_of(best)) {
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
  Shortlists shortlists_;
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
      options.workspace.per_rank ? options.workspace.per_rank(plan) : std::vector<Index>{};
  return planned_memory_of_ranks(network, plan, options.memory, workspace, program_bytes(cluster));
}

}  // namespace

std::vector<MemoryUse> searched_memory(const Network& network,
                                       const ClusterProfile& cluster,
                                       const SearchOptions& options,
                                       const Partition& partition) {
  if (is_plannable(network, partition.ranks, options.batch)) {
    return memory_of(network, cluster, options, make_plan(network, partition, options.batch));
  }
  std::vector<MemoryUse> uses = estimated_memory_of_ranks(network, partition, options);
  for (std::size_t rank = 0; rank < uses.size(); ++rank) {
    const bool reads = options.reader.reads(static_cast<int>(rank));
    uses[rank].data =
        (reads ? options.memory.data_bytes : 0) + (rank == 0 ? options.memory.judging_bytes : 0);
    uses[rank].cache = reads ? options.memory.cache_bytes : 0;
    uses[rank].program = cluster.devices[rank].program_bytes;
  }
  return uses;
}

Candidate evaluated(const Network& network,
                    const ClusterProfile& cluster,
                    const SearchOptions& options,
                    const Partition& partition) {
  Candidate candidate;
  candidate.partition = partition;
  const StepCost cost = step_cost(network, partition, options.batch, cluster, options.cost);
  candidate.modelled_s = cost.total();
  const bool simulates = is_simulable(network, cluster.size());
  std::vector<DeviceActivity> activities;
  if (simulates) {
    const Plan plan = make_plan(network, partition, options.batch);
    const PricedStep priced = priced_step(network, plan, cluster, options.cost);
    const SimulatedStep step = simulate(priced, cluster);
    candidate.simulated_s = step.step_s;
    activities = device_activities(plan, priced, step);
    candidate.memory = options.counts_memory ? memory_of(network, cluster, options, plan)
                                             : std::vector<MemoryUse>{};
  } else if (options.counts_memory) {
    candidate.memory = searched_memory(network, cluster, options, partition);
  }
  candidate.energy = step_energy(
      cluster, simulates ? activities : device_activities(cost), candidate.predicted_s());
  return candidate;
}

Candidate with_best_optimizer(const Network& network,
                              const ClusterProfile& cluster,
                              const SearchOptions& options,
                              Candidate candidate) {
  Partition partition = candidate.partition;
  if (!options.chooses_optimizer || !candidate.simulated_s ||
      options.objective == Objective::Memory || partition.replicas.independent() ||
      partition.gradient_reduction.compression != Compression::Exact) {
    return candidate;
  }
  partition.gradient_reduction.optimizer = OptimizerStates::Replicated;
  Candidate replicated = evaluated(network, cluster, options, partition);
  const bool fits =
      !options.counts_memory ||
      largest_shortage(replicated.memory, memory_limits(cluster, options)).missing_bytes() <= 0;
  const bool is_better = objective_value(options.objective, replicated) <
                         kWorthIt * objective_value(options.objective, candidate);
  return fits && is_better ? replicated : candidate;
}

double objective_value(Objective objective, const Candidate& candidate) {
  return objective_value(objective,
                         candidate.predicted_s(),
                         is_of_energy(objective) ? candidate.energy.value().energy_j : 0);
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
