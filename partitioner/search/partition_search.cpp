#include "partitioner/search/partition_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

constexpr double kWorthSimulating = 1.005;  // of the best price: what is within is worth simulating
constexpr std::size_t kMostWays = 200000;   // that are looked at to be sure of what was found
// States at each layer when looking for a first partition. Where memory is bounded, few may be too
// few to find any.
constexpr std::size_t kBeams[] = {4, 64};

std::vector<std::vector<GroupChoice>> choices_by_first_layer(GroupChoices& choices, int layers) {
  std::vector<std::vector<GroupChoice>> all;
  for (int first = 0; first < layers; ++first) {
    all.push_back(choices.from(first));
  }
  return all;
}

}  // namespace

PartitionSearch::PartitionSearch(const Network& network,
                                 const ClusterProfile& cluster,
                                 const SearchOptions& options,
                                 std::vector<Index> limits,
                                 ChoiceScope scope)
    : network_(network),
      cluster_(cluster),
      options_(options),
      scope_(std::move(scope)),
      choices_(network, cluster, options, scope_, limits),
      all_(choices_by_first_layer(choices_, network.size())),
      bounds_(all_),
      exchanges_(network, cluster, options, scope_, choices_.regions(), limits),
      limits_(std::move(limits)) {
  for (const auto& choices : all_) {
    effort_.groups += static_cast<Index>(choices.size());
  }
}

std::vector<Partition> PartitionSearch::cheapest(const MemoryPrice& memory,
                                                 std::size_t most,
                                                 double hidden,
                                                 const EnergyPrice& energy) {
  prices_ = {memory, hidden, energy};
  best_ = kInfiniteRate;
  slack_ = kWorthSimulating;
  bounds_.begin(prices_, keeps_all_);
  for (const std::size_t beam : kBeams) {
    pass_through(beam);
    if (!ends_.empty() || memory.most == kInfiniteRate) {
      break;
    }
  }
  if (ends_.empty()) {
    return {};
  }
  best_ = way(ends_.front()).price * (1 + kRounding);
  bounds_.drop_above(limit());
  bounds_.count_last_map(exchanges_, limit());
  pass_through(options_.most_states);
  return partitions(most);
}

PartitionSearch::Faster PartitionSearch::faster_than(double seconds) {
  prices_ = {};
  best_ = seconds * (1 - kRounding);
  slack_ = 1;
  keeps_all_ = true;
  count_least_rest();
  bounds_.begin(prices_, keeps_all_);
  bounds_.drop_above(limit());
  bounds_.count_last_map(exchanges_, limit());
  pass_through(std::numeric_limits<std::size_t>::max());
  keeps_all_ = false;
  if (ways_.size() >= kMostWays) {
    return {{}, false};
  }
  return {partitions(ends_.size()), true};
}

Shortlist PartitionSearch::choices_within(double seconds) {
  Shortlist within(static_cast<std::size_t>(network_.size()));
  prices_ = {};
  best_ = seconds * (1 + kRounding);
  slack_ = 1;
  bounds_.begin(prices_, true);
  bounds_.drop_above(limit());
  bounds_.count_last_map(exchanges_, limit());
  within_ = &within;
  pass_through(options_.most_states);
  within_ = nullptr;
  return within;
}

// All states, layer by layer; of each layer at most so many, the most promising.
void PartitionSearch::pass_through(std::size_t most_states) {
  ways_ = {Way{}};
  ends_.clear();
  states_.assign(static_cast<std::size_t>(network_.size()) + 1, {});
  states_[0][first_state()] = {0};
  for (int first = 0; first < network_.size(); ++first) {
    auto& states = states_[static_cast<std::size_t>(first)];
    const double highest = highest_price_of(first, states, most_states);
    effort_.states += static_cast<Index>(states.size());
    for (const auto& [state, ways] : states) {
      if (cheapest_of(ways) + rest_of(first, state) <= highest) {
        append_groups(first, state, ways);
      }
    }
    states.clear();
  }
  for (const auto& [state, ways] : states_.back()) {
    ends_.insert(ends_.end(), ways.begin(), ways.end());
  }
  std::stable_sort(
      ends_.begin(), ends_.end(), [this](int a, int b) { return way(a).price < way(b).price; });
}

// The price, to the end, of the last of the `most` cheapest states.
double PartitionSearch::highest_price_of(int first,
                                         const std::map<State, std::vector<int>>& states,
                                         std::size_t most) {
  if (states.size() <= most) {
    return kInfiniteRate;
  }
  std::vector<double> prices;
  prices.reserve(states.size());
  for (const auto& [state, ways] : states) {
    prices.push_back(cheapest_of(ways) + rest_of(first, state));
  }
  std::sort(prices.begin(), prices.end());
  effort_.complete = effort_.complete && most < options_.most_states;
  return prices[most - 1];
}

double PartitionSearch::cheapest_of(const std::vector<int>& ways) const {
  double least = kInfiniteRate;
  for (const int one : ways) {
    least = std::min(least, way(one).price);
  }
  return least;
}

// The least price from a state on.
double PartitionSearch::rest_of(int first, const State& state) const {
  const bool has_last = !state.empty() && state.back().first == first - 1;
  return bounds_.from(first, has_last ? state.back().second : kNoRegions);
}

// With a reader the image is a map like any other. Where every rank reads its own part, nothing of
// it is sent.
PartitionSearch::State PartitionSearch::first_state() {
  const auto reader = options_.reader.single_rank();
  if (!reader) {
    return {};
  }
  RegionsOfRanks owned(scope_.looked_at.empty() ? cluster_.devices.size()
                                                : scope_.looked_at.size());
  const auto& looked_at = scope_.looked_at;
  const auto at =
      looked_at.empty()
          ? *reader
          : std::lower_bound(looked_at.begin(), looked_at.end(), *reader) - looked_at.begin();
  owned[static_cast<std::size_t>(at)] = whole_map(network_, kImage, options_.batch);
  return {{kImage, choices_.regions().number(owned)}};
}

void PartitionSearch::append_groups(int first, const State& state, const std::vector<int>& ways) {
  const double least = cheapest_of(ways);
  for (const GroupChoice* choice : bounds_.choices(first)) {
    if (is_too_expensive(least + bounds_.through(*choice)) ||
        (keeps_all_ && ways_.size() >= kMostWays)) {
      break;
    }
    const double rest = bounds_.after(*choice);
    if (is_too_expensive(least + prices_.price(*choice) + rest)) {
      continue;
    }
    ++effort_.steps;
    const double budget = limit() - least - prices_.price(*choice) - rest;
    const ExchangePrices::Exchange reads = reads_of(state, *choice, budget);
    const double step = prices_.price(*choice) + reads.price;
    if (is_too_expensive(least + step + rest)) {
      continue;
    }
    if (within_ != nullptr) {
      within_->at(static_cast<std::size_t>(first)).insert(choice->name);
    }
    auto& there =
        states_[static_cast<std::size_t>(choice->group.last) + 1][state_after(state, *choice)];
    const auto number = static_cast<int>(choice - all_[static_cast<std::size_t>(first)].data());
    for (const int from : ways) {
      const double price = way(from).price + step;
      const MemoryLoad load = way(from).load.with(*choice, reads.load);
      if (is_too_expensive(price + rest) || bounds_.takes_too_much(load, *choice)) {
        continue;
      }
      LeastBytes taken;
      if (keeps_all_) {
        taken = way(from).least;
        taken.add(choice->least);
        if (!can_fit(taken, choice->group.last + 1)) {
          continue;
        }
      }
      add_way({price, from, number, way(from).groups + 1, load, std::move(taken)}, there);
    }
  }
}

// What the rest of a plan takes on each rank, whatever it is.
void PartitionSearch::count_least_rest() {
  least_rest_.assign(all_.size() + 1, std::vector<Index>(limits_.size()));
  for (std::size_t first = all_.size(); first-- > 0;) {
    std::vector<Index>& rest = least_rest_[first];
    std::fill(rest.begin(), rest.end(), std::numeric_limits<Index>::max());
    for (const GroupChoice& choice : all_[first]) {
      const auto& after = least_rest_[static_cast<std::size_t>(choice.group.last) + 1];
      for (std::size_t rank = 0; rank < rest.size(); ++rank) {
        const Index own = choice.least.fixed.empty() ? 0 : choice.least.fixed[rank];
        const bool has_rest = after[rank] < std::numeric_limits<Index>::max();
        rest[rank] = has_rest ? std::min(rest[rank], own + after[rank]) : rest[rank];
      }
    }
  }
}

// Whether a plan that takes this up to layer `next` may stay within the limits.
bool PartitionSearch::can_fit(const LeastBytes& least, int next) const {
  const std::vector<Index>& rest = least_rest_[static_cast<std::size_t>(next)];
  for (std::size_t rank = 0; rank < least.fixed.size(); ++rank) {
    if (least.fixed[rank] + least.kept[rank] > limits_[rank] - rest[rank]) {
      return false;
    }
  }
  return true;
}

// Whether none of the ways takes less memory.
bool PartitionSearch::is_smallest(const Way& way, const std::vector<int>& there) const {
  return std::none_of(there.begin(), there.end(), [&](int other) {
    return this->way(other).load.total() < way.load.total();
  });
}

// Keeps the few cheapest, and where memory is bounded the smallest; of those that cost the same,
// the one of fewest groups.
void PartitionSearch::add_way(const Way& way, std::vector<int>& there) {
  const auto place =
      std::upper_bound(there.begin(), there.end(), way.price, [this](double price, int other) {
        return price < this->way(other).price;
      });
  const auto most = static_cast<std::size_t>(options_.candidates);
  const bool is_full = !keeps_all_ && there.size() >= most;
  const auto beats = [](const Way& a, const Way& b) {
    constexpr double kEqual = 1e-12;
    return std::abs(a.price - b.price) <= kEqual * b.price && a.groups <= b.groups;
  };
  const bool is_beaten = !keeps_all_ && std::any_of(there.begin(), there.end(), [&](int other) {
    return beats(this->way(other), way);
  });
  const bool bounded = prices_.memory.most < kInfiniteRate;
  if (is_beaten || (is_full && place == there.end() && !(bounded && is_smallest(way, there)))) {
    return;
  }
  there.insert(place, static_cast<int>(ways_.size()));
  ways_.push_back(way);
  if (is_full) {
    const bool keeps_last = bounded && most > 1 && is_smallest(this->way(there.back()), there);
    there.erase(there.end() - (keeps_last ? 2 : 1));
  }
}

ExchangePrices::Exchange PartitionSearch::reads_of(const State& state,
                                                   const GroupChoice& choice,
                                                   double budget) {
  ExchangePrices::Exchange sum;
  for (const MapRegions& reads : choice.reads) {
    if (options_.reader.is_sent(reads.map)) {
      const auto found = std::find_if(state.begin(), state.end(), [&reads](const auto& live) {
        return live.first == reads.map;
      });
      expects(found != state.end(), "a map that is read is live");
      const ExchangePrices::Exchange exchange =
          exchanges_.priced(reads.map, found->second, reads.regions, prices_, budget - sum.price);
      sum.price += exchange.price;
      sum.load += exchange.load;
    }
  }
  return sum;
}

PartitionSearch::State PartitionSearch::state_after(const State& state,
                                                    const GroupChoice& choice) const {
  State next;
  next.reserve(state.size() + choice.makes.size());
  for (const auto& [map, owned] : state) {
    if (choices_.last_reader(map) > choice.group.last) {
      next.emplace_back(map, owned);
    }
  }
  for (const MapRegions& made : choice.makes) {
    next.emplace_back(made.map, made.regions);
  }
  return next;
}

std::vector<Partition> PartitionSearch::partitions(std::size_t most) const {
  std::vector<Partition> found;
  for (std::size_t i = 0; i < std::min(most, ends_.size()); ++i) {
    found.push_back(partition_of(ends_[i]));
  }
  return found;
}

Partition PartitionSearch::partition_of(int end) const {
  Partition partition;
  partition.network = fingerprint(network_);
  partition.ranks = cluster_.size();
  partition.reader = options_.reader;
  partition.kernels = options_.kernels;
  partition.gradient_reduction = options_.gradient_reduction;
  std::vector<int> path;
  for (int at = end; way(at).from >= 0; at = way(at).from) {
    path.push_back(at);
  }
  std::size_t first = 0;
  for (auto at = path.rbegin(); at != path.rend(); ++at) {
    partition.groups.push_back(all_[first][static_cast<std::size_t>(way(*at).choice)].group);
    first = static_cast<std::size_t>(partition.groups.back().last) + 1;
  }
  return partition;
}

}  // namespace tessera::partitioner
