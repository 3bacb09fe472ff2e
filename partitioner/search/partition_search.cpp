#include "partitioner/search/partition_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "partitioner/base/errors.h"
#include "partitioner/cost/step_messages.h"
#include "partitioner/network/layer_memory.h"
#include "partitioner/search/group_memory.h"

namespace tessera::partitioner {

namespace {

constexpr int kNobody = -1;                 // owns a map that is not read any more
constexpr double kWorthSimulating = 1.005;  // of the best price: what is within is worth simulating
constexpr double kRounding = 1e-9;          // of prices added up in another order
constexpr std::size_t kMostWays = 200000;   // that are looked at to be sure of what was found
// States at each layer when looking for a first partition. Where memory is bounded, few may be too
// few to find any.
constexpr std::size_t kBeams[] = {4, 64};

int last_made(const GroupChoice& choice) {
  const bool read = !choice.makes.empty() && choice.makes.back().map == choice.group.last;
  return read ? choice.makes.back().regions : kNobody;
}

// Forward alone: what any device lacks has to come through its interface.
double least_exchange_s(const RegionsOfRanks& owners,
                        const RegionsOfRanks& readers,
                        const ClusterProfile& cluster) {
  double least_s = 0;
  for (std::size_t rank = 0; rank < readers.size(); ++rank) {
    const double lacking =
        region_bytes(readers[rank]) - region_bytes(intersect(owners[rank], readers[rank]));
    least_s = std::max(least_s, lacking / cluster.devices[rank].receive_bytes_per_s);
  }
  return least_s;
}

}  // namespace

PartitionSearch::PartitionSearch(const Network& network,
                                 const ClusterProfile& cluster,
                                 const SearchOptions& options,
                                 std::vector<Index> limits)
    : network_(network),
      cluster_(cluster),
      options_(options),
      limits_(std::move(limits)),
      choices_(network, cluster, options, limits_),
      load_(cluster) {
  for (int first = 0; first < network.size(); ++first) {
    all_.push_back(choices_.from(first));
    effort_.groups += static_cast<Index>(all_.back().size());
  }
  bound_fixed_load();
}

std::vector<Partition> PartitionSearch::cheapest(const MemoryPrice& memory,
                                                 std::size_t most,
                                                 double hidden) {
  memory_ = memory;
  hidden_ = hidden;
  best_ = kInfiniteRate;
  slack_ = kWorthSimulating;
  bound_without_exchanges();
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
  leave_out_dear_choices();
  bound_with_last_map();
  pass_through(options_.most_states);
  return partitions(most);
}

PartitionSearch::Faster PartitionSearch::faster_than(double seconds) {
  memory_ = {};
  hidden_ = 0;
  best_ = seconds * (1 - kRounding);
  slack_ = 1;
  keeps_all_ = true;
  bound_without_exchanges();
  leave_out_dear_choices();
  bound_with_last_map();
  pass_through(std::numeric_limits<std::size_t>::max());
  keeps_all_ = false;
  if (ways_.size() >= kMostWays) {
    return {{}, false};
  }
  return {partitions(ends_.size()), true};
}

void PartitionSearch::bound_fixed_load() {
  fixed_to_end_.assign(all_.size() + 1, kInfiniteRate);
  fixed_to_end_.back() = 0;
  for (std::size_t first = all_.size(); first-- > 0;) {
    for (const GroupChoice& choice : all_[first]) {
      const double rest = fixed_to_end_[static_cast<std::size_t>(choice.group.last) + 1];
      fixed_to_end_[first] = std::min(fixed_to_end_[first], choice.fixed + rest);
    }
  }
}

// In a group's backward pass all is there that earlier groups and itself keep, and what it takes
// for a moment; `reads` is what it takes to get the maps that it reads.
PartitionSearch::Load PartitionSearch::with(Load load, const GroupChoice& choice, double reads) {
  load.fixed += choice.fixed;
  load.kept += choice.load - choice.fixed + reads;
  load.peak = std::max(load.peak, load.kept + choice.for_a_moment);
  return load;
}

bool PartitionSearch::takes_too_much(const Load& load, const GroupChoice& last) const {
  const double later = fixed_to_end_[static_cast<std::size_t>(last.group.last) + 1];
  return load.fixed + load.peak + later > memory_.most;
}

// The least price from each layer on if exchanges cost nothing, and choices in the order of what
// they make possible.
void PartitionSearch::bound_without_exchanges() {
  const auto layers = static_cast<std::size_t>(network_.size());
  to_end_.assign(layers + 1, kInfiniteRate);
  to_end_[layers] = 0;
  to_end_from_.assign(layers + 1, {});
  by_first_.assign(layers, {});
  for (std::size_t first = layers; first-- > 0;) {
    auto& choices = by_first_[first];
    for (const GroupChoice& choice : all_[first]) {
      if (takes_too_much(with({}, choice, 0), choice)) {
        continue;
      }
      // Variants of a group follow each other: of those, the cheapest will do.
      if (keeps_all_ || choices.empty() || !choice.passes_for(*choices.back())) {
        choices.push_back(&choice);
      } else if (price(choice) < price(*choices.back())) {
        choices.back() = &choice;
      }
    }
    std::stable_sort(choices.begin(), choices.end(), [this](const auto* a, const auto* b) {
      return least_through(*a) < least_through(*b);
    });
    if (!choices.empty()) {
      to_end_[first] = least_through(*choices.front());
    }
  }
}

void PartitionSearch::leave_out_dear_choices() {
  from_start_.assign(by_first_.size() + 1, kInfiniteRate);
  from_start_[0] = 0;
  for (std::size_t first = 0; first < by_first_.size(); ++first) {
    for (const GroupChoice* choice : by_first_[first]) {
      double& there = from_start_[static_cast<std::size_t>(choice->group.last) + 1];
      there = std::min(there, from_start_[first] + price(*choice));
    }
    std::erase_if(by_first_[first], [&](const GroupChoice* choice) {
      return too_dear(from_start_[first] + least_through(*choice));
    });
  }
}

double PartitionSearch::least_through(const GroupChoice& choice) const {
  return price(choice) + to_end_[static_cast<std::size_t>(choice.group.last) + 1];
}

// The least price from each layer on, by who owns the map just before it, if exchanges of all other
// maps cost nothing. In a chain of layers that is what it really takes. What is too dear may be
// dearer than it says.
void PartitionSearch::bound_with_last_map() {
  for (const auto& choices : by_first_) {
    for (const GroupChoice* choice : choices) {
      to_end_from_[static_cast<std::size_t>(choice->group.last) + 1][last_made(*choice)] = 0;
    }
  }
  for (std::size_t first = by_first_.size(); first-- > 0;) {
    const int map = static_cast<int>(first) - 1;
    const double too_dear = (best_ * slack_ - from_start_[first]) * (1 + kRounding);
    for (auto& [owned, least] : to_end_from_[first]) {
      least = too_dear;
      for (const GroupChoice* choice : by_first_[first]) {
        if (least_through(*choice) >= least) {
          break;
        }
        double of = price(*choice) + rest_after(*choice);
        if (of >= least) {
          continue;
        }
        for (const MapRegions& reads : choice->reads) {
          of += reads.map == map ? exchange_of(map, owned, reads.regions, least - of).price : 0;
        }
        least = std::min(least, of);
      }
    }
  }
}

// The least price that is left after a choice.
double PartitionSearch::rest_after(const GroupChoice& choice) const {
  const auto next = static_cast<std::size_t>(choice.group.last) + 1;
  const auto found = to_end_from_[next].find(last_made(choice));
  return found == to_end_from_[next].end() ? to_end_[next] : found->second;
}

// ... and from a state on.
double PartitionSearch::rest_of(int first, const State& state) const {
  const auto& bounds = to_end_from_[static_cast<std::size_t>(first)];
  const bool has_last = !state.empty() && state.back().first == first - 1;
  const auto found = bounds.find(has_last ? state.back().second : kNobody);
  return found == bounds.end() ? to_end_[static_cast<std::size_t>(first)] : found->second;
}

// All states, layer by layer; of each layer at most so many, the most promising.
void PartitionSearch::pass_through(std::size_t most_states) {
  ways_ = {Way{}};
  ends_.clear();
  states_.assign(static_cast<std::size_t>(network_.size()) + 1, {});
  states_[0][first_state()] = {0};
  for (int first = 0; first < network_.size(); ++first) {
    auto& states = states_[static_cast<std::size_t>(first)];
    const double dearest = dearest_of(first, states, most_states);
    effort_.states += static_cast<Index>(states.size());
    for (const auto& [state, ways] : states) {
      if (cheapest_of(ways) + rest_of(first, state) <= dearest) {
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
double PartitionSearch::dearest_of(int first,
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

// With a reader the image is a map like any other. Where every rank reads its own part, nothing of
// it is sent.
PartitionSearch::State PartitionSearch::first_state() {
  if (options_.reader == kEveryRank) {
    return {};
  }
  RegionsOfRanks owned(cluster_.devices.size());
  owned[static_cast<std::size_t>(options_.reader)] = whole_map(network_, kImage, options_.batch);
  return {{kImage, choices_.regions().number(owned)}};
}

void PartitionSearch::append_groups(int first, const State& state, const std::vector<int>& ways) {
  const double least = cheapest_of(ways);
  for (const GroupChoice* choice : by_first_[static_cast<std::size_t>(first)]) {
    if (too_dear(least + least_through(*choice)) || (keeps_all_ && ways_.size() >= kMostWays)) {
      break;
    }
    const double rest = rest_after(*choice);
    if (too_dear(least + price(*choice) + rest)) {
      continue;
    }
    ++effort_.steps;
    const double budget = best_ * slack_ - least - price(*choice) - rest;
    const Reads reads = reads_of(state, *choice, budget);
    const double step = price(*choice) + reads.price;
    if (too_dear(least + step + rest)) {
      continue;
    }
    auto& there =
        states_[static_cast<std::size_t>(choice->group.last) + 1][state_after(state, *choice)];
    const auto number = static_cast<int>(choice - all_[static_cast<std::size_t>(first)].data());
    for (const int from : ways) {
      const double price = way(from).price + step;
      const Load load = with(way(from).load, *choice, reads.load);
      if (!too_dear(price + rest) && !takes_too_much(load, *choice)) {
        add_way({price, from, number, way(from).groups + 1, load}, there);
      }
    }
  }
}

// Whether none of the ways takes less memory.
bool PartitionSearch::is_smallest(const Way& way, const std::vector<int>& there) const {
  const auto total = [](const Way& of) { return of.load.fixed + of.load.peak; };
  return std::none_of(
      there.begin(), there.end(), [&](int other) { return total(this->way(other)) < total(way); });
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
  const bool bounded = memory_.most < kInfiniteRate;
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

PartitionSearch::Reads PartitionSearch::reads_of(const State& state,
                                                 const GroupChoice& choice,
                                                 double budget) {
  Reads sum;
  for (const MapRegions& reads : choice.reads) {
    if (is_sent(reads.map)) {
      const auto found = std::find_if(
          state.begin(), state.end(), [&reads](const auto& of) { return of.first == reads.map; });
      expects(found != state.end(), "a map that is read is live");
      const Reads of = exchange_of(reads.map, found->second, reads.regions, budget - sum.price);
      sum.price += of.price;
      sum.load += of.load;
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

bool PartitionSearch::is_sent(int map) const {
  return map != kImage || options_.reader != kEveryRank;
}

// Of a step, for a map that some own and others require. What is beyond the budget may be more than
// that.
PartitionSearch::Reads PartitionSearch::exchange_of(int map,
                                                    int owned,
                                                    int required,
                                                    double budget) {
  if (owned == kNobody || !is_sent(map)) {
    return {};
  }
  const bool comes_from_pre_activations =
      map != kImage && normalizes(network_.layer(map).operation);
  const auto key = static_cast<std::uint64_t>(comes_from_pre_activations) << 63U |
                   static_cast<std::uint64_t>(owned) << 32U | static_cast<std::uint32_t>(required);
  const auto [found, is_new] = exchanges_.try_emplace(key);
  ExchangePrice& of = found->second;
  const RegionsOfRanks& owners = choices_.regions().at(owned);
  const RegionsOfRanks& readers = choices_.regions().at(required);
  if (is_new) {
    of.least_s = least_exchange_s(owners, readers, cluster_);
  }
  const double least_s = static_cast<double>(options_.cost.passes) * of.least_s;
  if (!of.exact && least_s > budget * (1 + kRounding)) {
    return {least_s, 0};
  }
  if (!of.exact) {
    of.exact = true;
    const auto index = owners_.try_emplace(owned, owners).first;
    of.seconds = exchange_seconds(index->second, readers, load_);
    of.load = exchange_load(owners, readers, comes_from_pre_activations, options_.memory, limits_);
  }
  const double backward_s = map == kImage ? 0 : (1 - hidden_) * of.seconds.backward_s;
  const double seconds =
      static_cast<double>(options_.cost.passes) * (of.seconds.forward_s + backward_s);
  return {seconds + memory_.seconds * of.load, of.load};
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
