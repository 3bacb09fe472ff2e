#include "partitioner/search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/cost/simulation.h"
#include "partitioner/search/partition_search.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostChecks = 20000;  // partitions whose memory is planned to be sure
constexpr double kRounding = 1e-9;
constexpr Index kBucketBytes[] = {
    Index{1} << 16U, Index{1} << 18U, Index{1} << 20U, Index{1} << 23U};
constexpr double kHidden[] = {0.25, 0.5, 0.75, 1};  // shares of what may travel while ranks compute
constexpr double kWorthIt = 0.998;                  // of a step, for another size of buckets
constexpr double kDearest = 1000;                   // price of all memory of a device, in steps
// From one state to another, after which a search under limits is content with what it has: some
// seconds. Small problems take far fewer.
constexpr Index kManySteps = 8000000;

// The next lower of the limits, eight to a doubling, under which to look as well.
Index lower_rung(Index bytes) {
  constexpr double kToADoubling = 8;
  const double rung = std::ceil(kToADoubling * std::log2(static_cast<double>(bytes))) - 1;
  return static_cast<Index>(std::exp2(rung / kToADoubling));
}

// One search: what fits, what is fastest, what takes least.
class Planner {
 public:
  // With `rungs` lower limits of memory are looked under as well, that many of them.
  Planner(const Network& network,
          const ClusterProfile& cluster,
          const SearchOptions& options,
          int rungs = kRungs)
      : network_(network),
        cluster_(cluster),
        options_(options),
        rungs_(rungs),
        limits_(memory_limits(cluster, options)) {}

  SearchResult run() {
    const auto most = static_cast<std::size_t>(options_.candidates);
    PartitionSearch by_time(network_, cluster_, options_, {});
    std::vector<Partition> partitions = by_time.cheapest({}, most);
    result_.effort = by_time.effort();
    expects(!partitions.empty(), "one device can do it all");
    const Partition fastest = partitions.front();
    fastest_s_ = modelled_s(fastest);
    std::erase_if(partitions, [this](const Partition& of) { return !fits(of); });
    if (options_.objective == Objective::Memory) {
      partitions = fastest_of_smallest(fastest);
    } else if (partitions.empty() || partitions.front() != fastest) {
      partitions = under_limits(std::move(partitions));
      if (partitions.empty()) {
        partitions = small_ones(fastest);
      }
      add_rungs(partitions);
    }
    if (partitions.empty()) {
      partitions = {smallest(fastest)};
    } else if (options_.objective == Objective::Time) {
      add_hiding(by_time, partitions);
      if (single_layers_) {
        add_hiding(*single_layers_, partitions);
      }
    }
    for (const Partition& partition : partitions) {
      result_.candidates.push_back(evaluated(network_, cluster_, options_, partition));
    }
    std::stable_sort(
        result_.candidates.begin(), result_.candidates.end(), [](const auto& a, const auto& b) {
          return a.predicted_s() < b.predicted_s();
        });
    tune_buckets(result_.candidates);
    if (!fits(partitions.front())) {
      result_.smallest = std::move(result_.candidates.front());
      result_.candidates.clear();
    }
    return std::move(result_);
  }

 private:
  static constexpr int kRungs = 2;

  // Searches under limits are not exact: one under a lower limit may find what is faster. Small
  // problems have the time for it.
  void add_rungs(std::vector<Partition>& partitions) {
    constexpr Index kFewSteps = kManySteps / 8;
    if (rungs_ == 0 || !options_.memory_limit_bytes ||
        search_with_memory().effort().steps > kFewSteps) {
      return;
    }
    SearchOptions lower = options_;
    for (int rung = 0; rung < rungs_; ++rung) {
      lower.memory_limit_bytes = lower_rung(*lower.memory_limit_bytes);
      SearchResult found = Planner(network_, cluster_, lower, 0).run();
      for (Candidate& candidate : found.candidates) {
        partitions.push_back(std::move(candidate.partition));
      }
    }
    sort_by_time(partitions);
    partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
  }

  // The fastest of those that take no more than the smallest.
  std::vector<Partition> fastest_of_smallest(const Partition& start) {
    const Partition least = smallest(start);
    SearchOptions tight = options_;
    tight.objective = Objective::Time;
    tight.memory_limit_bytes = evaluated(network_, cluster_, options_, least).most_bytes();
    std::vector<Partition> partitions = {least};
    for (Candidate& candidate : Planner(network_, cluster_, tight, 0).run().candidates) {
      partitions.push_back(std::move(candidate.partition));
    }
    return partitions;
  }

  // Those that fit of all that turn up in the search for the smallest.
  std::vector<Partition> small_ones(const Partition& start) {
    (void)smallest(start);
    std::vector<Partition> found;
    for (const Partition& partition : small_ones_) {
      if (fits(partition)) {
        found.push_back(partition);
      }
    }
    sort_by_time(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    found.resize(
        std::min({found.size(), few_checks(), static_cast<std::size_t>(options_.candidates)}));
    for (Partition& partition : found) {
      partition = keeping_more(partition);
    }
    sort_by_time(found);
    return found;
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
        if (!known && fits(partition)) {
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
      if (partition != best.partition && fits(partition)) {
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

  // What has been worked out for a partition.
  struct Known {
    std::optional<double> load;
    std::optional<double> modelled_s;
  };
  [[nodiscard]] Known& known(const Partition& partition) { return known_[to_text(partition)]; }

  // The largest share of its limit that a rank takes; above 1 the partition does not fit.
  [[nodiscard]] double load_of(const Partition& partition) {
    std::optional<double>& load = known(partition).load;
    if (!load) {
      const std::vector<MemoryUse> uses = searched_memory(network_, cluster_, options_, partition);
      load = 0;
      for (std::size_t rank = 0; rank < uses.size(); ++rank) {
        const auto limit = static_cast<double>(limits_[rank]);
        load = std::max(*load, static_cast<double>(uses[rank].total()) / limit);
      }
    }
    return *load;
  }

  [[nodiscard]] bool fits(const Partition& partition) {
    return !options_.counts_memory || load_of(partition) <= 1;
  }

  // What a rank takes of its limit whatever the partition is: the program and data sets, and what a
  // single reader decodes.
  [[nodiscard]] Index taken_anyway(std::size_t rank) const {
    const bool alone = options_.reader == static_cast<int>(rank);
    const bool reads = alone || options_.reader == kEveryRank;
    return cluster_.devices[rank].program_bytes + (reads ? options_.memory.data_bytes : 0) +
           (alone ? options_.memory.decoding_bytes : 0);
  }

  // What that leaves of each limit.
  [[nodiscard]] std::vector<Index> limits_of_network() const {
    std::vector<Index> left = limits_;
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      left[rank] = std::max<Index>(left[rank] - taken_anyway(rank), 1);
    }
    return left;
  }

  PartitionSearch& search_with_memory() {
    if (!with_memory_) {
      with_memory_ =
          std::make_unique<PartitionSearch>(network_, cluster_, options_, limits_of_network());
      result_.effort.groups += with_memory_->effort().groups;
    }
    return *with_memory_;
  }

  [[nodiscard]] std::vector<Partition> cheapest(PartitionSearch& search, const MemoryPrice& price) {
    return search.cheapest(price, static_cast<std::size_t>(options_.candidates));
  }

  // The partitions that fit among the cheapest, by time.
  std::vector<Partition> fitting_at(PartitionSearch& search, const MemoryPrice& price) {
    std::vector<Partition> found = cheapest(search, price);
    std::erase_if(found, [this](const Partition& of) { return !fits(of); });
    sort_by_time(found);
    return found;
  }

  // The higher the price of memory, the less of it is taken: looks for the lowest price at which
  // something fits, for several shares of memory that it may take by the count of the search, which
  // only comes near that of planned_memory(). It is furthest off for long groups, so those of one
  // layer are looked at by themselves as well. Narrow shares come last: bounds hardly help there.
  std::vector<Partition> under_limits(std::vector<Partition> found) {
    std::vector<PartitionSearch*> searches = {&search_with_memory()};
    if (options_.longest_group > 1) {
      of_single_layers_ = options_;
      of_single_layers_.longest_group = 1;
      single_layers_ = std::make_unique<PartitionSearch>(
          network_, cluster_, of_single_layers_, limits_of_network());
      searches.push_back(single_layers_.get());
    }
    for (PartitionSearch* const search : searches) {
      std::vector<Partition> best;
      for (const double most : {kInfiniteRate, 1.4, 1.15, 1.0, 0.85}) {
        if (has_tried_enough(*search)) {
          break;
        }
        std::vector<Partition> free = cheapest(*search, {0, most});
        sort_by_time(free);
        if (!free.empty() && !best.empty() &&
            modelled_s(free.front()) >= modelled_s(best.front())) {
          break;  // a narrower share leaves no faster ones
        }
        auto fitting = at_lowest_price(*search, most, std::move(free));
        if (best.empty() ||
            (!fitting.empty() && modelled_s(fitting.front()) < modelled_s(best.front()))) {
          best = std::move(fitting);
        }
      }
      found.insert(found.end(), best.begin(), best.end());
    }
    sort_by_time(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    found.resize(std::min(found.size(), few_checks()));
    for (Partition& partition : found) {
      partition = keeping_more(partition);
    }
    sort_by_time(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    make_sure(found);
    return found;
  }

  // Memory has one price for all groups: of those that compute their maps again, some may keep them
  // and all still fits. The ones that gain the most come first: as many of them as fit together,
  // then each of the others that still does.
  Partition keeping_more(const Partition& partition) {
    const std::vector<std::size_t> groups = slow_to_recompute(partition);
    const auto keeping = [&groups, &partition](std::size_t count) {
      Partition other = partition;
      for (std::size_t i = 0; i < count; ++i) {
        other.groups[groups[i]].recompute = false;
      }
      return other;
    };
    std::size_t fitting = 0;
    for (std::size_t more = groups.size(); more > fitting;) {
      const std::size_t middle = (fitting + more + 1) / 2;
      if (fits(keeping(middle))) {
        fitting = middle;
      } else {
        more = middle - 1;
      }
    }
    Partition best = keeping(fitting);
    for (std::size_t i = fitting + 1; i < std::min(groups.size(), fitting + few_checks()); ++i) {
      Partition other = best;
      other.groups[groups[i]].recompute = false;
      if (fits(other)) {
        best = std::move(other);
      }
    }
    return best;
  }

  // Groups that compute their maps again, those that take the longest first.
  [[nodiscard]] std::vector<std::size_t> slow_to_recompute(const Partition& partition) const {
    const StepCost cost = step_cost(network_, partition, options_.batch, cluster_, options_.cost);
    std::vector<std::size_t> groups;
    for (std::size_t group = 0; group < cost.groups.size(); ++group) {
      if (cost.groups[group].recompute_s > 0) {
        groups.push_back(group);
      }
    }
    std::stable_sort(groups.begin(), groups.end(), [&cost](std::size_t a, std::size_t b) {
      return cost.groups[a].recompute_s > cost.groups[b].recompute_s;
    });
    return groups;
  }

  // Whether a partition fits takes longer the more messages its plan has: so many may be looked at.
  [[nodiscard]] std::size_t few_checks() const {
    constexpr std::size_t kMostMessages = 4000000;
    const std::size_t ranks = cluster_.devices.size();
    return std::max<std::size_t>(kMostMessages / (ranks * ranks * network_.layers.size()), 1);
  }

  [[nodiscard]] static bool has_tried_enough(const PartitionSearch& search, Index since = 0) {
    return search.effort().steps - since > kManySteps;
  }

  // `best` is what is fastest where memory costs nothing.
  std::vector<Partition> at_lowest_price(PartitionSearch& search,
                                         double most,
                                         std::vector<Partition> best) {
    constexpr double kFactor = 8;
    constexpr int kHalvings = 4;
    double low = 0;
    double high = 0;
    std::erase_if(best, [this](const Partition& of) { return !fits(of); });
    while (best.empty() && high < kDearest * fastest_s_ && !has_tried_enough(search)) {
      low = high;
      high = high == 0 ? fastest_s_ / kFactor : high * kFactor;
      best = fitting_at(search, {high, most});
    }
    for (int i = 0; i < kHalvings && !best.empty() && high > 0 && !has_tried_enough(search); ++i) {
      const double middle = low == 0 ? high / kFactor : std::sqrt(low * high);
      const auto found = fitting_at(search, {middle, most});
      (found.empty() ? low : high) = middle;
      if (!found.empty() && modelled_s(found.front()) < modelled_s(best.front())) {
        best = found;
      }
    }
    return best;
  }

  // Prices of memory miss partitions that take little of what is scarce and much of the rest: so
  // this looks at all that are faster than the best, where they are few enough.
  void make_sure(std::vector<Partition>& best) {
    const double best_s = best.empty() ? kInfiniteRate : modelled_s(best.front());
    const auto faster = search_with_memory().faster_than(best_s);
    result_.effort.complete = faster.all && faster.partitions.size() <= kMostChecks;
    if (!result_.effort.complete) {
      return;
    }
    const auto found = std::find_if(faster.partitions.begin(),
                                    faster.partitions.end(),
                                    [this](const Partition& of) { return fits(of); });
    if (found != faster.partitions.end()) {
      best.insert(best.begin(), *found);
    }
  }

  // Looks for the least share of what the fastest takes that something may take by the count of the
  // search; of all that turns up, the smallest in truth. So the limits have no part in it, other
  // than by what they are to each other.
  const Partition& smallest(const Partition& start) {
    if (!smallest_) {
      std::vector<Index> taken = limits_;
      for (std::size_t rank = 0; rank < taken.size(); ++rank) {
        const auto bytes = static_cast<Index>(static_cast<double>(limits_[rank]) * load_of(start));
        taken[rank] = std::max<Index>(bytes - taken_anyway(rank), 1);
      }
      PartitionSearch search(network_, cluster_, options_, taken);
      smallest_ = smallest_by(search, start);
    }
    return *smallest_;
  }

  Partition smallest_by(PartitionSearch& search, const Partition& start) {
    constexpr int kSteps = 7;
    constexpr double kFactor = 8;
    constexpr int kPrices = 4;
    constexpr int kBoundedPrices = 2;  // what a bound leaves is much the same at any higher price
    Partition best = start;
    double load = load_of(best);
    double low = 1.0 / 16;
    double high = 2;
    for (int i = 0; i < kSteps && !has_tried_enough(search); ++i) {
      const double most = i == 0 ? kInfiniteRate : std::sqrt(low * high);
      const int prices = i == 0 ? kPrices : kBoundedPrices;
      bool found = false;
      double price = fastest_s_;
      for (int k = 0; k < prices; ++k, price *= kFactor) {
        for (const Partition& partition : cheapest(search, {price, most})) {
          const double of = load_of(partition);
          small_ones_.push_back(partition);
          found = true;
          if (of < load) {
            load = of;
            best = partition;
          }
        }
      }
      if (i > 0) {
        (found ? high : low) = most;
      }
    }
    return best;
  }

  // Without what is the same for all: the sums of the loss.
  [[nodiscard]] double modelled_s(const Partition& partition) {
    std::optional<double>& seconds = known(partition).modelled_s;
    if (!seconds) {
      CostOptions cost = options_.cost;
      cost.has_loss = false;
      seconds = step_cost(network_, partition, options_.batch, cluster_, cost).total();
    }
    return *seconds;
  }

  // Sorted by time; of those that take the same, in their own order.
  void sort_by_time(std::vector<Partition>& partitions) {
    std::stable_sort(partitions.begin(), partitions.end(), [this](const auto& a, const auto& b) {
      return modelled_s(a) < modelled_s(b);
    });
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  int rungs_;
  std::vector<Index> limits_;           // [rank]
  double fastest_s_ = 0;                // of a step, whatever memory it takes
  std::map<std::string, Known> known_;  // by text of the partition
  std::optional<Partition> smallest_;
  std::vector<Partition> small_ones_;  // that were met on the way to it
  std::unique_ptr<PartitionSearch> with_memory_;
  SearchOptions of_single_layers_;
  std::unique_ptr<PartitionSearch> single_layers_;  // where limits are in the way
  SearchResult result_;
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
