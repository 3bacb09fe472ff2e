// For a search: what it costs that a map which ranks own in one way is read in another. Each pair
// of regions is priced once.

#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "partitioner/cost/step_messages.h"
#include "partitioner/search/group_choices.h"
#include "partitioner/search/search_prices.h"

namespace tessera::partitioner {

constexpr int kNoRegions = -1;      // in the place of a number: nobody reads the map any more
constexpr double kRounding = 1e-9;  // of prices added up in another order

class ExchangePrices {
 public:
  // `limits` are bytes of each rank; none: memory is not counted. All others must outlive it. Where
  // regions are those of some ranks, prices are at most the truth.
  ExchangePrices(const Network& network,
                 const ClusterProfile& cluster,
                 const SearchOptions& options,
                 const ChoiceScope& scope,
                 const RegionTable& regions,
                 std::vector<Index> limits);

  struct Exchange {
    double price = 0;  // of a step
    double load = 0;   // share of a device's memory
  };

  // What the exchange between the regions with these numbers costs. If it costs more than `budget`,
  // only a lower bound that does so, too, may be returned.
  [[nodiscard]] Exchange priced(
      int map, int owned, int required, const SearchPrices& prices, double budget);

 private:
  [[nodiscard]] std::size_t device(std::size_t at) const {
    return scope_.looked_at.empty() ? at : static_cast<std::size_t>(scope_.looked_at[at]);
  }
  [[nodiscard]] ExchangeSeconds least_seconds(const RegionsOfRanks& owners,
                                              const RegionsOfRanks& readers) const;
  [[nodiscard]] ExchangeSeconds product_seconds(int owned, int required) const;
  [[nodiscard]] ExchangeSeconds seconds_between(int owned, int required);
  struct Known {
    ExchangeSeconds least;  // at least, of one pass
    bool exact = false;     // what follows is known
    ExchangeSeconds seconds;
    double load = 0;
  };

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  const ChoiceScope& scope_;
  const RegionTable& regions_;
  std::vector<Index> limits_;  // [rank]
  std::unordered_map<std::uint64_t, Known> known_;
  std::unordered_map<int, OverlapIndex> owners_;  // by number of their regions
  TransferLoad load_;
};

}  // namespace tessera::partitioner
