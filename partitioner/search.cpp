#include "partitioner/search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "partitioner/errors.h"
#include "partitioner/group_choices.h"
#include "partitioner/layout.h"
#include "partitioner/simulation.h"
#include "partitioner/step_messages.h"

namespace partitioner {

namespace {

constexpr int kNobody = -1;                // owns a map that is not read any more
constexpr double kRivals = 1.005;          // of the best time: what is within is worth simulating
constexpr std::size_t kMostWays = 300000;  // that are looked at to be sure of what was found
constexpr std::size_t kBeam = 4;       // states at each layer when looking for a first partition
constexpr std::size_t kWideBeam = 32;  // ... and when looking for one of little memory

// What there is to know of a map that is still to be read.
struct LiveMap {
  int map = kImage;
  int owned = -1;
  int buffer = -1;  // what its makers' buffers hold; only where memory is counted
  friend bool operator<(const LiveMap& a, const LiveMap& b) {
    return std::tie(a.map, a.owned, a.buffer) < std::tie(b.map, b.owned, b.buffer);
  }
};
using State = std::vector<LiveMap>;  // by map

// One way to get to a state.
struct Way {
  double seconds = 0;
  int from = -1;    // way
  int choice = -1;  // of those that begin where `from` ends
  int groups = 0;
  RankBytes bytes;
};

// A step from a state by a choice: what both together cost.
struct StepBetween {
  double seconds = 0;
  std::vector<Index> bytes;  // of ranks: buffers and messages of the maps that are read
};

bool as_fast(const Way& a, const Way& b) {
  constexpr double kRounding = 1e-12;
  return std::abs(a.seconds - b.seconds) <= kRounding * b.seconds;
}

bool no_worse(const Way& a, const Way& b) {
  const auto all_leq = [](const std::vector<Index>& x, const std::vector<Index>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] > y[i]) {
        return false;
      }
    }
    return true;
  };
  return a.seconds <= b.seconds && all_leq(a.bytes.additive, b.bytes.additive) &&
         all_leq(a.bytes.peak, b.bytes.peak);
}

class Search {
 public:
  Search(const Network& network,
         const ClusterProfile& cluster,
         const SearchOptions& options,
         std::vector<Index> limits)
      : network_(network),
        cluster_(cluster),
        options_(options),
        limits_(std::move(limits)),
        choices_(network, cluster, options, !limits_.empty()),
        loads_(cluster) {
    for (int first = 0; first < network.size(); ++first) {
      by_first_.push_back(choices_.from(first));
      effort_.groups += static_cast<Index>(by_first_.back().size());
    }
    bound_without_exchanges();
    bound_with_last_map();
  }

  using Accept = std::function<bool(const Partition&)>;

  // Partitions in the order of their time, at most `most`, that `accept` accepts.
  std::vector<Partition> best(const Accept& accept, std::size_t most) {
    best_s_ = kInfiniteRate;
    pass_through(kBeam);
    for (const int end : ends_) {
      if (accept(partition_of(end))) {
        best_s_ = way(end).seconds;
        break;
      }
    }
    pass_through(options_.most_states);
    return accepted(accept, most);
  }

  // The same among few states; nothing found does not mean that there is none.
  std::vector<Partition> any(const Accept& accept) {
    best_s_ = kInfiniteRate;
    prefers_small_ = true;
    pass_through(kWideBeam);
    prefers_small_ = false;
    return accepted(accept, 1);
  }

  // The fastest that takes less than `seconds`, or nothing. No way there is beaten by another that
  // seems to take no more memory: so this is sure, unless there are too many ways to look at.
  struct Verdict {
    std::optional<Partition> faster;
    bool sure = true;
  };
  Verdict faster_than(double seconds, const Accept& accept) {
    constexpr double kRounding = 1e-9;
    best_s_ = seconds * (1 - kRounding) / kRivals;
    keeps_all_ = true;
    pass_through(std::numeric_limits<std::size_t>::max());
    keeps_all_ = false;
    Verdict verdict{{}, ways_.size() < kMostWays};
    for (Partition& partition : accepted(accept, 1)) {
      verdict.faster = std::move(partition);
    }
    return verdict;
  }

  // How much of each device's memory may be used, as this search counts it.
  void limit(std::vector<Index> limits) { limits_ = std::move(limits); }

  [[nodiscard]] const SearchEffort& effort() const { return effort_; }

 private:
  [[nodiscard]] bool counts_memory() const { return !limits_.empty(); }

  std::vector<Partition> accepted(const Accept& accept, std::size_t most) const {
    std::vector<Partition> found;
    for (const int end : ends_) {
      Partition partition = partition_of(end);
      if (accept(partition)) {
        found.push_back(std::move(partition));
      }
      if (found.size() == most) {
        break;
      }
    }
    return found;
  }

  // The least time from each layer on if exchanges cost nothing, and choices in the order of what
  // they make possible.
  void bound_without_exchanges() {
    const auto layers = static_cast<std::size_t>(network_.size());
    to_end_.assign(layers + 1, kInfiniteRate);
    to_end_[layers] = 0;
    for (std::size_t first = layers; first-- > 0;) {
      auto& choices = by_first_[first];
      std::stable_sort(choices.begin(), choices.end(), [this](const auto& a, const auto& b) {
        return least_through(a) < least_through(b);
      });
      to_end_[first] = least_through(choices.front());
    }
  }

  [[nodiscard]] double least_through(const GroupChoice& choice) const {
    return choice.seconds + to_end_[static_cast<std::size_t>(choice.group.last) + 1];
  }

  // The least time from each layer on, by who owns the map just before it, if exchanges of all
  // other maps cost nothing. In a chain of layers that is what it really takes.
  void bound_with_last_map() {
    const auto layers = static_cast<std::size_t>(network_.size());
    to_end_from_.assign(layers + 1, {});
    for (const auto& choices : by_first_) {
      for (const GroupChoice& choice : choices) {
        to_end_from_[static_cast<std::size_t>(choice.group.last) + 1][last_made(choice)] = 0;
      }
    }
    for (std::size_t first = layers; first-- > 0;) {
      const int map = static_cast<int>(first) - 1;
      for (auto& [owned, least_s] : to_end_from_[first]) {
        least_s = kInfiniteRate;
        for (const GroupChoice& choice : by_first_[first]) {
          if (least_through(choice) >= least_s) {
            break;
          }
          double seconds = choice.seconds;
          for (const MapRegions& reads : choice.reads) {
            seconds += reads.map == map ? exchange_s(map, owned, reads.required) : 0;
          }
          least_s = std::min(least_s, seconds + rest_after(choice));
        }
      }
    }
  }

  [[nodiscard]] static int last_made(const GroupChoice& choice) {
    const bool read = !choice.makes.empty() && choice.makes.back().map == choice.group.last;
    return read ? choice.makes.back().required : kNobody;
  }

  // The least time that is left after a choice.
  [[nodiscard]] double rest_after(const GroupChoice& choice) const {
    return to_end_from_[static_cast<std::size_t>(choice.group.last) + 1].at(last_made(choice));
  }

  // ... and from a state on.
  [[nodiscard]] double rest_of(int first, const State& state) const {
    const auto& bounds = to_end_from_[static_cast<std::size_t>(first)];
    const bool has_last = !state.empty() && state.back().map == first - 1;
    const auto found = bounds.find(has_last ? state.back().owned : kNobody);
    return found == bounds.end() ? to_end_[static_cast<std::size_t>(first)] : found->second;
  }

  // Whether a partition of so many seconds is of no use.
  [[nodiscard]] bool too_slow(double seconds) const { return seconds > best_s_ * kRivals; }

  // All states, layer by layer; of each layer at most so many, the fastest.
  void pass_through(std::size_t most_states) {
    ways_.clear();
    ends_.clear();
    states_.assign(static_cast<std::size_t>(network_.size()) + 1, {});
    Way start;
    start.bytes = {std::vector<Index>(limits_.size()), std::vector<Index>(limits_.size())};
    ways_.push_back(std::move(start));
    states_[0][first_state()] = {0};
    for (int first = 0; first < network_.size(); ++first) {
      const auto& states = states_[static_cast<std::size_t>(first)];
      const double slowest_s = slowest_of(first, states, most_states);
      effort_.states += static_cast<Index>(states.size());
      for (const auto& [state, ways] : states) {
        if (promise(first, state, ways) <= slowest_s) {
          append_groups(first, state, ways);
        }
      }
    }
    for (const auto& [state, ways] : states_.back()) {
      ends_.insert(ends_.end(), ways.begin(), ways.end());
    }
    std::stable_sort(ends_.begin(), ends_.end(), [this](int a, int b) {
      return way(a).seconds < way(b).seconds;
    });
  }

  // How good a state is, the less the better: the least time to the end through it, or the least
  // share of any device's memory that it takes.
  [[nodiscard]] double promise(int first, const State& state, const std::vector<int>& ways) const {
    if (!prefers_small_) {
      return fastest_of(ways) + rest_of(first, state);
    }
    double least = kInfiniteRate;
    for (const int one : ways) {
      const RankBytes& bytes = way(one).bytes;
      double load = 0;
      for (std::size_t rank = 0; rank < limits_.size(); ++rank) {
        load = std::max(load,
                        static_cast<double>(bytes.additive[rank] + bytes.peak[rank]) /
                            static_cast<double>(limits_[rank]));
      }
      least = std::min(least, load);
    }
    return least;
  }

  // The promise of the last of the `most` best states.
  double slowest_of(int first, const std::map<State, std::vector<int>>& states, std::size_t most) {
    if (states.size() <= most) {
      return kInfiniteRate;
    }
    std::vector<double> seconds;
    seconds.reserve(states.size());
    for (const auto& [state, ways] : states) {
      seconds.push_back(promise(first, state, ways));
    }
    std::sort(seconds.begin(), seconds.end());
    effort_.complete = effort_.complete && most < options_.most_states;
    return seconds[most - 1];
  }

  [[nodiscard]] const Way& way(int number) const { return ways_[static_cast<std::size_t>(number)]; }

  [[nodiscard]] double fastest_of(const std::vector<int>& ways) const {
    double seconds = kInfiniteRate;
    for (const int one : ways) {
      seconds = std::min(seconds, way(one).seconds);
    }
    return seconds;
  }

  // With a reader the image is a map like any other. Where every rank reads its own part, nothing
  // of it is sent, and only its buffers are of interest.
  State first_state() {
    if (options_.reader != kEveryRank) {
      RegionsOfRanks owned(cluster_.devices.size());
      owned[static_cast<std::size_t>(options_.reader)] =
          whole_map(network_, kImage, options_.batch);
      const int number = choices_.regions().number(owned);
      return {{kImage, number, counts_memory() ? number : -1}};
    }
    return {};
  }

  void append_groups(int first, const State& state, const std::vector<int>& ways) {
    const auto& choices = by_first_[static_cast<std::size_t>(first)];
    const double least_s = fastest_of(ways);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      const GroupChoice& choice = choices[c];
      if (too_slow(least_s + least_through(choice))) {
        break;
      }
      const double rest = rest_after(choice);
      if (too_slow(least_s + choice.seconds + rest)) {
        continue;
      }
      State next;
      const StepBetween step = step_between(state, choice, next);
      ++effort_.steps;
      if (too_slow(least_s + step.seconds + rest)) {
        continue;
      }
      auto& there = states_[static_cast<std::size_t>(choice.group.last) + 1][next];
      for (const int from : ways) {
        const double seconds = way(from).seconds + step.seconds;
        if (!too_slow(seconds + rest)) {
          add_way({seconds,
                   from,
                   static_cast<int>(c),
                   way(from).groups + 1,
                   bytes_after(way(from), choice, step)},
                  there);
        }
      }
      if (there.empty()) {
        states_[static_cast<std::size_t>(choice.group.last) + 1].erase(next);
      }
    }
  }

  [[nodiscard]] RankBytes bytes_after(const Way& from,
                                      const GroupChoice& choice,
                                      const StepBetween& step) const {
    RankBytes bytes = from.bytes;
    for (std::size_t rank = 0; rank < limits_.size(); ++rank) {
      bytes.additive[rank] += choice.bytes.additive[rank] + step.bytes[rank];
      bytes.peak[rank] = std::max(bytes.peak[rank], choice.bytes.peak[rank]);
    }
    return bytes;
  }

  // Keeps the few fastest, or with limits all that are not beaten.
  void add_way(Way way, std::vector<int>& there) {
    for (std::size_t rank = 0; rank < limits_.size(); ++rank) {
      if (way.bytes.additive[rank] + way.bytes.peak[rank] > limits_[rank]) {
        return;
      }
    }
    if (keeps_all_) {
      if (ways_.size() < kMostWays) {
        there.push_back(static_cast<int>(ways_.size()));
        ways_.push_back(std::move(way));
      }
      return;
    }
    const auto beats = [this](const Way& a, const Way& b) {
      return counts_memory() ? no_worse(a, b) : as_fast(a, b) && a.groups <= b.groups;
    };
    for (const int other : there) {
      if (beats(this->way(other), way)) {
        return;
      }
    }
    std::erase_if(there, [&](int other) { return beats(way, this->way(other)); });
    const std::size_t most =
        counts_memory() ? options_.most_ways : static_cast<std::size_t>(options_.candidates);
    const auto place = std::upper_bound(
        there.begin(), there.end(), way.seconds, [this](double seconds, int other) {
          return seconds < this->way(other).seconds;
        });
    there.insert(place, static_cast<int>(ways_.size()));
    ways_.push_back(std::move(way));
    if (there.size() > most) {
      there.pop_back();
      effort_.complete = effort_.complete && !counts_memory();
    }
  }

  [[nodiscard]] static const LiveMap& live(const State& state, int map) {
    const auto found = std::find_if(
        state.begin(), state.end(), [map](const LiveMap& of) { return of.map == map; });
    expects(found != state.end(), "a map that is read is live");
    return *found;
  }

  // What the step costs, and the state that it leads to.
  StepBetween step_between(const State& state, const GroupChoice& choice, State& next) {
    StepBetween step;
    step.seconds = choice.seconds;
    step.bytes.resize(limits_.size());
    next = state;
    if (choice.image_owned >= 0 && counts_memory()) {
      next.insert(next.begin(), LiveMap{kImage, choice.image_owned, choice.image_owned});
      add_buffers(choice.image_owned, step.bytes);
    } else if (choice.group.first == 0 && counts_memory()) {
      add_buffers(live(state, kImage).buffer, step.bytes);
    }
    for (const MapRegions& reads : choice.reads) {
      const bool sent = is_sent(reads.map);
      if (sent) {
        step.seconds += exchange_s(reads.map, live(next, reads.map).owned, reads.required);
      }
      if (counts_memory()) {
        place(reads, sent || options_.memory.image_gradient, next, step.bytes);
      }
    }
    std::erase_if(
        next, [&](const LiveMap& of) { return choices_.last_reader(of.map) <= choice.group.last; });
    for (const MapRegions& made : choice.makes) {
      next.push_back({made.map, made.required, made.buffer});
    }
    return step;
  }

  void add_buffers(int buffer, std::vector<Index>& bytes) const {
    for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
      bytes[rank] +=
          options_.memory.scalar_bytes * blocked_volume(choices_.regions().at(buffer)[rank]);
    }
  }

  // Buffers and packed messages of a map for a group that reads it: by the plan's rule, one buffer
  // with the maker's where a hull of both is no larger than the two apart.
  void place(const MapRegions& reads, bool sent, State& state, std::vector<Index>& bytes) {
    LiveMap& map =
        *std::find_if(state.begin(), state.end(), [&](auto& of) { return of.map == reads.map; });
    const RegionTable& table = choices_.regions();
    const RegionsOfRanks& owned = table.at(map.owned);
    const RegionsOfRanks& required = table.at(reads.required);
    RegionsOfRanks homes = table.at(map.buffer);
    const Index scalar = options_.memory.scalar_bytes;
    for (std::size_t rank = 0; rank < bytes.size(); ++rank) {
      const Region& buffer = table.at(reads.buffer)[rank];
      const Region both = hull(homes[rank], buffer);
      const bool in_place =
          both.volume() <= homes[rank].volume() + buffer.volume() && !homes[rank].empty();
      if (in_place) {
        bytes[rank] += scalar * (blocked_volume(both) - blocked_volume(homes[rank]));
        homes[rank] = both;
      } else {
        bytes[rank] += scalar * blocked_volume(buffer);
      }
      for (std::size_t from = 0; from < bytes.size() && sent; ++from) {
        const Index packed = scalar * intersect(owned[from], required[rank]).volume();
        if (from != rank) {
          bytes[from] += packed;
          bytes[rank] += packed;
        } else if (!in_place) {
          bytes[rank] += packed;
        }
      }
    }
    map.buffer = choices_.regions().number(homes);
  }

  [[nodiscard]] bool is_sent(int map) const {
    return map != kImage || options_.reader != kEveryRank;
  }

  // Of a step, for a map that some own and others require.
  double exchange_s(int map, int owned, int required) {
    if (owned == kNobody || !is_sent(map)) {
      return 0;
    }
    const auto key =
        static_cast<std::uint64_t>(owned) << 32U | static_cast<std::uint32_t>(required);
    const auto [found, is_new] = exchanges_.try_emplace(key);
    if (is_new) {
      found->second =
          exchange_seconds(choices_.regions().at(owned), choices_.regions().at(required), loads_);
    }
    const double backward_s = map == kImage ? 0 : found->second.backward_s;
    return static_cast<double>(options_.cost.passes) * (found->second.forward_s + backward_s);
  }

  [[nodiscard]] Partition partition_of(int end) const {
    Partition partition;
    partition.network = fingerprint(network_);
    partition.ranks = cluster_.size();
    partition.reader = options_.reader;
    partition.kernels = options_.kernels;
    std::vector<int> path;
    for (int at = end; way(at).from >= 0; at = way(at).from) {
      path.push_back(at);
    }
    int first = 0;
    for (auto at = path.rbegin(); at != path.rend(); ++at) {
      const auto& choices = by_first_[static_cast<std::size_t>(first)];
      partition.groups.push_back(choices[static_cast<std::size_t>(way(*at).choice)].group);
      first = partition.groups.back().last + 1;
    }
    return partition;
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  std::vector<Index> limits_;  // [rank]; empty: memory is not counted
  GroupChoices choices_;
  std::vector<std::vector<GroupChoice>> by_first_;  // by first layer
  std::vector<double> to_end_;  // by layer: the least seconds from it on without exchanges
  // By layer and owners of the map before it: the same with exchanges of that map.
  std::vector<std::unordered_map<int, double>> to_end_from_;
  bool prefers_small_ = false;     // states of little memory to fast ones
  bool keeps_all_ = false;         // ways to a state, whether beaten or not
  double best_s_ = kInfiniteRate;  // of a partition that is known
  std::vector<Way> ways_;
  std::vector<std::map<State, std::vector<int>>> states_;  // by next layer; ways by time
  std::vector<int> ends_;                                  // ways to the end, by time
  std::unordered_map<std::uint64_t, ExchangeSeconds> exchanges_;
  ExchangeLoads loads_;
  SearchEffort effort_;
};

// One search: what fits, what is fastest, what takes least.
class Planner {
 public:
  Planner(const Network& network, const ClusterProfile& cluster, const SearchOptions& options)
      : network_(network), cluster_(cluster), options_(options) {
    for (const DeviceProfile& device : cluster.devices) {
      limits_.push_back(
          std::min(device.memory_bytes, options.memory_limit_bytes.value_or(device.memory_bytes)));
    }
  }

  SearchResult run() {
    Search by_time(network_, cluster_, options_, {});
    const auto most = static_cast<std::size_t>(options_.candidates);
    const auto all = [](const Partition&) { return true; };
    std::vector<Partition> partitions = by_time.best(all, most);
    result_.effort = by_time.effort();
    expects(!partitions.empty(), "one device can do it all");
    const Partition fastest = partitions.front();
    std::erase_if(partitions, [this](const Partition& of) { return load_of(of) > 1; });
    if (options_.objective == Objective::Memory) {
      partitions = {smallest(fastest)};
    } else if (partitions.empty() || partitions.front() != fastest) {
      partitions = under_limits(most);
    }
    for (const Partition& partition : partitions) {
      if (load_of(partition) <= 1) {
        result_.candidates.push_back(evaluate(partition));
      }
    }
    if (result_.candidates.empty()) {
      result_.smallest = evaluate(options_.objective == Objective::Memory ? partitions.front()
                                                                          : smallest(fastest));
    }
    std::stable_sort(
        result_.candidates.begin(),
        result_.candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.simulated_s < b.simulated_s; });
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::vector<MemoryUse> memory_of(const Plan& plan) const {
    std::vector<MemoryUse> uses;
    uses.reserve(static_cast<std::size_t>(plan.ranks));
    for (int rank = 0; rank < plan.ranks; ++rank) {
      uses.push_back(planned_memory(network_, plan, rank, options_.memory));
    }
    return uses;
  }

  // The largest share of its limit that a rank takes; above 1 the partition does not fit.
  [[nodiscard]] double load_of(const Partition& partition) const {
    const Plan plan = make_plan(network_, partition, options_.batch);
    double load = 0;
    const std::vector<MemoryUse> uses = memory_of(plan);
    for (std::size_t rank = 0; rank < uses.size(); ++rank) {
      load = std::max(load,
                      static_cast<double>(uses[rank].total()) / static_cast<double>(limits_[rank]));
    }
    return load;
  }

  [[nodiscard]] std::vector<Index> scaled_limits(double factor) const {
    std::vector<Index> scaled;
    scaled.reserve(limits_.size());
    for (const Index limit : limits_) {
      scaled.push_back(static_cast<Index>(factor * static_cast<double>(limit)));
    }
    return scaled;
  }

  Search& search_with_memory() {
    if (!with_memory_) {
      with_memory_ = std::make_unique<Search>(network_, cluster_, options_, limits_);
    }
    return *with_memory_;
  }

  void count(const SearchEffort& effort) {
    result_.effort.states += effort.states;
    result_.effort.steps += effort.steps;
    result_.effort.complete = result_.effort.complete && effort.complete;
  }

  // The search counts less than is needed in the end: where nothing that it finds fits, it has to
  // make do with less.
  std::vector<Partition> under_limits(std::size_t most) {
    const auto fits = [this](const Partition& of) { return load_of(of) <= 1; };
    Search& search = search_with_memory();
    std::vector<Partition> found;
    for (double factor = 1; factor > 0.7 && found.empty(); factor *= 0.95) {
      search.limit(scaled_limits(factor));
      found = search.best(fits, most);
    }
    count(search.effort());
    search.limit(limits_);
    const double found_s = found.empty() ? kInfiniteRate : modelled_s(found.front());
    const auto verdict = search.faster_than(found_s, fits);
    result_.effort.complete = verdict.sure;
    if (verdict.faster) {
      found.insert(found.begin(), *verdict.faster);
    }
    return found;
  }

  // By ever lower limits, in steps that shrink.
  Partition smallest(const Partition& start) {
    Search& search = search_with_memory();
    Partition best = start;
    double load = load_of(best);
    for (double step = 0.2; step > 0.01;) {
      const double wanted = load * (1 - step);
      search.limit(scaled_limits(wanted));
      const auto found = search.any([&](const Partition& of) { return load_of(of) <= wanted; });
      if (found.empty()) {
        step /= 2;
      } else {
        best = found.front();
        load = load_of(best);
      }
    }
    count(search.effort());
    return best;
  }

  // Without what is the same for all: the sums of the loss.
  [[nodiscard]] double modelled_s(const Partition& partition) const {
    CostOptions cost = options_.cost;
    cost.has_loss = false;
    const Plan plan = make_plan(network_, partition, options_.batch);
    return step_cost(network_, plan, cluster_, cost).total();
  }

  [[nodiscard]] Candidate evaluate(const Partition& partition) const {
    Candidate candidate;
    candidate.partition = partition;
    const Plan plan = make_plan(network_, partition, options_.batch);
    candidate.modelled_s = step_cost(network_, plan, cluster_, options_.cost).total();
    candidate.simulated_s =
        simulate(step_program(network_, plan, cluster_, options_.cost), cluster_).step_s;
    candidate.memory = memory_of(plan);
    return candidate;
  }

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  std::vector<Index> limits_;  // [rank]
  std::unique_ptr<Search> with_memory_;
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

SearchResult search_partition(const Network& network,
                              const ClusterProfile& cluster,
                              const SearchOptions& options) {
  expects(network.size() > 0 && cluster.size() > 0, "something to do, and someone to do it");
  return Planner(network, cluster, options).run();
}

}  // namespace partitioner
