// The dynamic programming of search.h: passes over the layers of a network, each along all ways to
// partition it that may be of use.

#pragma once

#include <map>
#include <utility>
#include <vector>

#include "partitioner/search/choice_bounds.h"
#include "partitioner/search/exchange_prices.h"
#include "partitioner/search/group_choices.h"
#include "partitioner/search/search.h"
#include "partitioner/search/search_prices.h"

namespace tessera::partitioner {

class PartitionSearch {
 public:
  // With limits of each rank, memory is counted.
  PartitionSearch(const Network& network,
                  const ClusterProfile& cluster,
                  const SearchOptions& options,
                  std::vector<Index> limits,
                  ChoiceScope scope = {});
  PartitionSearch(const PartitionSearch&) = delete;
  PartitionSearch& operator=(const PartitionSearch&) = delete;

  // The cheapest partitions, at most `most`, in the order of their price. `hidden` is the share of
  // what gradient reductions and gradients of maps take that costs nothing, since they travel while
  // ranks compute: 0 is what partitioner/cost/cost_model.h says, an upper bound, and in truth it is
  // something up to 1. With a price of energy it is in joules.
  [[nodiscard]] std::vector<Partition> cheapest(const MemoryPrice& memory,
                                                std::size_t most,
                                                double hidden = 0,
                                                const EnergyPrice& energy = {});

  // Every partition that takes less than `seconds`, in the order of time. `all` is false where
  // there are too many: then none is in the list.
  struct Faster {
    std::vector<Partition> partitions;
    bool all = true;
  };
  [[nodiscard]] Faster faster_than(double seconds);

  // The choices of all partitions that take no more than `seconds`.
  [[nodiscard]] Shortlist choices_within(double seconds);

  [[nodiscard]] const SearchEffort& effort() const { return effort_; }

 private:
  // Maps that are still to be read, and who owns them: map and number of regions, by map.
  using State = std::vector<std::pair<int, int>>;

  // One way to get to a state.
  struct Way {
    double price = 0;
    int from = -1;    // way
    int choice = -1;  // of those that begin where `from` ends
    int groups = 0;
    MemoryLoad load = {};
    LeastBytes least = {};  // where all ways are kept
  };

  [[nodiscard]] const Way& way(int number) const { return ways_[static_cast<std::size_t>(number)]; }
  // What a partition may cost to be of use.
  [[nodiscard]] double limit() const { return best_ * slack_; }
  [[nodiscard]] bool is_too_expensive(double price) const { return price > limit(); }

  void pass_through(std::size_t most_states);
  [[nodiscard]] double highest_price_of(int first,
                                        const std::map<State, std::vector<int>>& states,
                                        std::size_t most);
  [[nodiscard]] double cheapest_of(const std::vector<int>& ways) const;
  [[nodiscard]] double rest_of(int first, const State& state) const;
  [[nodiscard]] State first_state();
  void append_groups(int first, const State& state, const std::vector<int>& ways);
  void add_way(const Way& way, std::vector<int>& there);
  [[nodiscard]] bool can_fit(const LeastBytes& least, int next) const;
  void count_least_rest();
  [[nodiscard]] bool is_smallest(const Way& way, const std::vector<int>& there) const;
  // The price and load of all maps that a group reads.
  [[nodiscard]] ExchangePrices::Exchange reads_of(const State& state,
                                                  const GroupChoice& choice,
                                                  double budget);
  [[nodiscard]] State state_after(const State& state, const GroupChoice& choice) const;
  [[nodiscard]] std::vector<Partition> partitions(std::size_t most) const;
  [[nodiscard]] Partition partition_of(int end) const;

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  ChoiceScope scope_;
  GroupChoices choices_;
  std::vector<std::vector<GroupChoice>> all_;  // by first layer
  ChoiceBounds bounds_;
  ExchangePrices exchanges_;
  std::vector<Index> limits_;
  // By layer: what any rest of a plan takes from it on, throughout a step. Where all ways are kept.
  std::vector<std::vector<Index>> least_rest_;
  SearchPrices prices_;
  Shortlist* within_ = nullptr;  // where choices are noted that are of use
  bool keeps_all_ = false;       // ways to a state and variants of groups, beaten or not
  double best_ = kInfiniteRate;  // price of a partition that is known
  double slack_ = 1;             // of it: what is within is of use
  std::vector<Way> ways_;
  std::vector<std::map<State, std::vector<int>>> states_;  // by next layer; ways by price
  std::vector<int> ends_;                                  // ways to the end, by price
  SearchEffort effort_;
};

}  // namespace tessera::partitioner
