#include "partitioner/search/memory_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera::partitioner {

namespace {

constexpr std::size_t kMostChecks = 20000;  // partitions whose memory is planned to be sure, or
                                            // more where that takes little time
constexpr double kHighestPrice = 1000;      // of all memory of a device, in steps
// From one state to another, after which a search under limits is content with what it has: some
// seconds. Small problems take far fewer.
constexpr Index kManySteps = 8000000;
constexpr Index kFewSteps = kManySteps / 8;

bool has_tried_enough(const PartitionSearch& search) {
  return search.effort().steps > kManySteps;
}

}  // namespace

MemorySearch::MemorySearch(const Network& network,
                           const ClusterProfile& cluster,
                           const SearchOptions& options,
                           PartitionFigures& figures,
                           Shortlists& shortlists,
                           double fastest_s)
    : network_(network),
      cluster_(cluster),
      options_(options),
      single_layer_options_(options),
      figures_(figures),
      shortlists_(shortlists),
      fastest_s_(fastest_s) {
  single_layer_options_.longest_group = 1;
}

void MemorySearch::add_to(SearchEffort& effort) const {
  effort.groups += by_limits_ ? by_limits_->effort().groups : 0;
  effort.complete = complete_.value_or(effort.complete);
}

PartitionSearch& MemorySearch::by_limits() {
  if (!by_limits_) {
    by_limits_ = std::make_unique<PartitionSearch>(
        network_, cluster_, options_, figures_.limits_of_network(), shortlists_.within(factor_));
  }
  return *by_limits_;
}

bool MemorySearch::has_time_for_more() {
  return by_limits().effort().steps <= kFewSteps;
}

std::vector<Partition> MemorySearch::cheapest(PartitionSearch& search, const MemoryPrice& price) {
  return search.cheapest(price, static_cast<std::size_t>(options_.candidates));
}

// The partitions that fit among the cheapest, by time.
std::vector<Partition> MemorySearch::fitting_at(PartitionSearch& search, const MemoryPrice& price) {
  std::vector<Partition> found = cheapest(search, price);
  std::erase_if(found, [this](const Partition& partition) { return !figures_.fits(partition); });
  figures_.sort_by_time(found);
  return found;
}

bool MemorySearch::is_faster(const std::vector<Partition>& found,
                             const std::vector<Partition>& best) {
  return !found.empty() &&
         (best.empty() || figures_.seconds_of(found.front()) < figures_.seconds_of(best.front()));
}

// Where not all choices are looked at, more and more of them, until no partition with another one
// is faster than what was found.
std::vector<Partition> MemorySearch::under_limits(std::vector<Partition> found) {
  constexpr double kMostTimes = 10;
  for (;;) {
    std::vector<Partition> best = under_limits_within(found);
    const bool has_best =
        !best.empty() && figures_.seconds_of(best.front()) <= factor_ * fastest_s_;
    if (shortlists_.have_all() || has_best || factor_ > kMostTimes) {
      return best;
    }
    factor_ *= factor_;
    by_limits_.reset();
  }
}

// The search counts memory about as planned_memory_of_ranks() does. It is furthest off for long
// groups, so those of one layer are looked at by themselves as well.
std::vector<Partition> MemorySearch::under_limits_within(std::vector<Partition> found) {
  std::vector<PartitionSearch*> searches = {&by_limits()};
  if (options_.longest_group > 1) {
    single_layers_ = std::make_unique<PartitionSearch>(network_,
                                                       cluster_,
                                                       single_layer_options_,
                                                       figures_.limits_of_network(),
                                                       shortlists_.within(factor_));
    searches.push_back(single_layers_.get());
  }
  for (PartitionSearch* const search : searches) {
    const std::vector<Partition> best = best_of(*search);
    found.insert(found.end(), best.begin(), best.end());
  }
  keep_more(found, few_checks());
  add_all_faster(found);
  return found;
}

// Looks for the lowest price of memory at which something fits, for several shares of memory that
// it may take. Narrow shares come last: bounds hardly help there.
std::vector<Partition> MemorySearch::best_of(PartitionSearch& search) {
  std::vector<Partition> best;
  for (const double most : {kInfiniteRate, 1.4, 1.15, 1.0, 0.85}) {
    if (has_tried_enough(search)) {
      break;
    }
    std::vector<Partition> free = cheapest(search, {0, most});
    figures_.sort_by_time(free);
    if (!free.empty() && !best.empty() && !is_faster(free, best)) {
      break;  // a narrower share leaves no faster ones
    }
    auto fitting = at_lowest_price(search, most, std::move(free));
    if (best.empty() || is_faster(fitting, best)) {
      best = std::move(fitting);
    }
  }
  return best;
}

// `best` is what is fastest where memory costs nothing.
std::vector<Partition> MemorySearch::at_lowest_price(PartitionSearch& search,
                                                     double most,
                                                     std::vector<Partition> best) {
  constexpr double kFactor = 8;
  constexpr int kHalvings = 4;
  double low = 0;
  double high = 0;
  std::erase_if(best, [this](const Partition& partition) { return !figures_.fits(partition); });
  while (best.empty() && high < kHighestPrice * fastest_s_ && !has_tried_enough(search)) {
    low = high;
    high = high == 0 ? fastest_s_ / kFactor : high * kFactor;
    best = fitting_at(search, {high, most});
  }
  for (int i = 0; i < kHalvings && !best.empty() && high > 0 && !has_tried_enough(search); ++i) {
    const double middle = low == 0 ? high / kFactor : std::sqrt(low * high);
    const auto found = fitting_at(search, {middle, most});
    (found.empty() ? low : high) = middle;
    if (is_faster(found, best)) {
      best = found;
    }
  }
  return best;
}

// The fastest of the partitions, with as few recomputed groups as fit.
void MemorySearch::keep_more(std::vector<Partition>& partitions, std::size_t most) {
  figures_.sort_by_time(partitions);
  partitions.resize(std::min(partitions.size(), most));
  for (Partition& partition : partitions) {
    partition = keeping_more(partition);
  }
  figures_.sort_by_time(partitions);
}

// Memory has one price for all groups: of those that recompute their maps, some may keep them and
// all still fits. The ones that gain the most come first: as many of them as fit together, then
// each of the others that still does.
Partition MemorySearch::keeping_more(const Partition& partition) {
  const std::vector<std::size_t> groups = figures_.slow_to_recompute(partition);
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
    if (figures_.fits(keeping(middle))) {
      fitting = middle;
    } else {
      more = middle - 1;
    }
  }
  Partition best = keeping(fitting);
  for (std::size_t i = fitting + 1; i < std::min(groups.size(), fitting + few_checks()); ++i) {
    Partition other = best;
    other.groups[groups[i]].recompute = false;
    if (figures_.fits(other)) {
      best = std::move(other);
    }
  }
  return best;
}

// Whether a partition fits takes longer the more messages its plan has: so many may be looked at.
std::size_t MemorySearch::few_checks() const {
  constexpr std::size_t kMostMessages = 4000000;
  const std::size_t ranks = cluster_.devices.size();
  return std::max<std::size_t>(kMostMessages / (ranks * ranks * network_.layers.size()), 1);
}

// Prices of memory miss partitions that take little of what is scarce and much of the rest: so this
// looks at all that are faster than the best, where they are few enough.
void MemorySearch::add_all_faster(std::vector<Partition>& best) {
  const double best_s = best.empty() ? kInfiniteRate : figures_.seconds_of(best.front());
  const auto faster = by_limits().faster_than(best_s);
  complete_ = faster.all && faster.partitions.size() <= std::max(kMostChecks, few_checks());
  if (!*complete_) {
    return;
  }
  const auto found = std::find_if(
      faster.partitions.begin(), faster.partitions.end(), [this](const Partition& partition) {
        return figures_.fits(partition);
      });
  if (found != faster.partitions.end()) {
    best.insert(best.begin(), *found);
  }
}

std::vector<Partition> MemorySearch::small_ones(const Partition& start) {
  (void)smallest(start);
  std::vector<Partition> found;
  for (const Partition& partition : small_ones_) {
    if (figures_.fits(partition)) {
      found.push_back(partition);
    }
  }
  keep_more(found, std::min(few_checks(), static_cast<std::size_t>(options_.candidates)));
  return found;
}

const Partition& MemorySearch::smallest(const Partition& start) {
  if (!smallest_) {
    PartitionSearch search(network_,
                           cluster_,
                           options_,
                           figures_.limits_of_network(figures_.load_of(start)),
                           shortlists_.within(factor_));
    smallest_ = smallest_by(search, start);
  }
  return *smallest_;
}

// Looks for the least share of what the fastest takes that something may take by the count of the
// search; of all that turns up, the smallest in truth.
Partition MemorySearch::smallest_by(PartitionSearch& search, const Partition& start) {
  constexpr int kSteps = 7;
  constexpr double kFactor = 8;
  constexpr int kPrices = 4;
  constexpr int kBoundedPrices = 2;  // what a bound leaves is much the same at any higher price
  Partition best = start;
  double load = figures_.load_of(best);
  double low = 1.0 / 16;
  double high = 2;
  for (int i = 0; i < kSteps && !has_tried_enough(search); ++i) {
    const double most = i == 0 ? kInfiniteRate : std::sqrt(low * high);
    const int prices = i == 0 ? kPrices : kBoundedPrices;
    bool found = false;
    double price = fastest_s_;
    for (int k = 0; k < prices; ++k, price *= kFactor) {
      for (const Partition& partition : cheapest(search, {price, most})) {
        const double partition_load = figures_.load_of(partition);
        small_ones_.push_back(partition);
        found = true;
        if (partition_load < load) {
          load = partition_load;
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

}  // namespace tessera::partitioner
