// The dynamic programming of search.h: passes over the layers of a network, each along all ways to
// partition it that may be of use.
//
// A way's price is its seconds, plus a price of memory for each device's worth of it that its
// groups take. So a search for the fastest and one for what takes little memory are the same.

#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "partitioner/search/group_choices.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

struct MemoryPrice {
  double seconds = 0;           // for all memory of a device
  double most = kInfiniteRate;  // about the share of it that may be taken at any time
};

class PartitionSearch {
 public:
  // With limits of each rank, memory is counted.
  PartitionSearch(const Network& network,
                  const ClusterProfile& cluster,
                  const SearchOptions& options,
                  std::vector<Index> limits);

  // The cheapest partitions, at most `most`, in the order of their price. `hidden` is the share of
  // what gradient reductions and gradients of maps take that costs nothing, since they travel while
  // ranks compute: 0 is what partitioner/cost/cost_model.h says, an upper bound, and in truth it is
  // something up to 1.
  [[nodiscard]] std::vector<Partition> cheapest(const MemoryPrice& memory,
                                                std::size_t most,
                                                double hidden = 0);

  // Every partition that takes less than `seconds`, in the order of time. `all` is false where
  // there are too many: then none is in the list.
  struct Faster {
    std::vector<Partition> partitions;
    bool all = true;
  };
  [[nodiscard]] Faster faster_than(double seconds);

  [[nodiscard]] const SearchEffort& effort() const { return effort_; }

 private:
  // Maps that are still to be read, and who owns them: map and number of regions, by map.
  using State = std::vector<std::pair<int, int>>;

  // About what a way takes of memory.
  struct Load {
    double fixed = 0;  // throughout a step
    double kept = 0;   // from forward to backward pass
    double peak = 0;   // beside what is fixed, in the backward pass of some group
  };

  // One way to get to a state.
  struct Way {
    double price = 0;
    int from = -1;    // way
    int choice = -1;  // of those that begin where `from` ends
    int groups = 0;
    Load load = {};
  };

  // Of the maps that a group reads.
  struct Reads {
    double price = 0;
    double load = 0;
  };

  [[nodiscard]] double price(const GroupChoice& choice) const {
    return choice.seconds - hidden_ * choice.reduction_s + memory_.seconds * choice.load;
  }
  [[nodiscard]] const Way& way(int number) const { return ways_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] bool too_dear(double of) const { return of > best_ * slack_; }
  [[nodiscard]] bool is_sent(int map) const;

  void bound_fixed_load();
  void bound_without_exchanges();
  void bound_with_last_map();
  void leave_out_dear_choices();
  [[nodiscard]] double least_through(const GroupChoice& choice) const;
  [[nodiscard]] double rest_after(const GroupChoice& choice) const;
  [[nodiscard]] double rest_of(int first, const State& state) const;

  void pass_through(std::size_t most_states);
  [[nodiscard]] double dearest_of(int first,
                                  const std::map<State, std::vector<int>>& states,
                                  std::size_t most);
  [[nodiscard]] double cheapest_of(const std::vector<int>& ways) const;
  [[nodiscard]] State first_state();
  void append_groups(int first, const State& state, const std::vector<int>& ways);
  void add_way(const Way& way, std::vector<int>& there);
  [[nodiscard]] bool is_smallest(const Way& way, const std::vector<int>& there) const;
  [[nodiscard]] Reads reads_of(const State& state, const GroupChoice& choice, double budget);
  [[nodiscard]] static Load with(Load load, const GroupChoice& choice, double reads);
  [[nodiscard]] bool takes_too_much(const Load& load, const GroupChoice& last) const;
  [[nodiscard]] State state_after(const State& state, const GroupChoice& choice) const;
  [[nodiscard]] Reads exchange_of(int map, int owned, int required, double budget);
  [[nodiscard]] std::vector<Partition> partitions(std::size_t most) const;
  [[nodiscard]] Partition partition_of(int end) const;

  struct ExchangePrice {
    double least_s = 0;  // at least, of one pass
    bool exact = false;  // what follows is known
    ExchangeSeconds seconds;
    double load = 0;
  };

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  std::vector<Index> limits_;  // [rank]; empty: memory is not counted
  GroupChoices choices_;
  std::vector<std::vector<GroupChoice>> all_;  // by first layer
  std::vector<double> fixed_to_end_;           // by layer: load that is there throughout, at least
  MemoryPrice memory_;
  double hidden_ = 0;
  std::vector<std::vector<const GroupChoice*>> by_first_;  // that may be of use, the best first
  std::vector<double> to_end_;      // by layer: the least price from it on without exchanges
  std::vector<double> from_start_;  // ... and up to it
  // By layer and owners of the map before it: the same with exchanges of that map.
  std::vector<std::unordered_map<int, double>> to_end_from_;
  bool keeps_all_ = false;       // ways to a state and variants of groups, beaten or not
  double best_ = kInfiniteRate;  // price of a partition that is known
  double slack_ = 1;             // of it: what is within is of use
  std::vector<Way> ways_;
  std::vector<std::map<State, std::vector<int>>> states_;  // by next layer; ways by price
  std::vector<int> ends_;                                  // ways to the end, by price
  std::unordered_map<std::uint64_t, ExchangePrice> exchanges_;
  std::unordered_map<int, OverlapIndex> owners_;  // by number of their regions
  TransferLoad load_;
  SearchEffort effort_;
};

}  // namespace tessera::partitioner
