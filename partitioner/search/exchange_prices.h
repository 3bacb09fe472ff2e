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
  // `limits` are bytes of each rank; none: memory is not counted. All others must outlive it.
  ExchangePrices(const Network& network,
                 const ClusterProfile& cluster,
                 const SearchOptions& options,
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
  struct Known {
    double least_s = 0;  // at least, of one pass
    bool exact = false;  // what follows is known
    ExchangeSeconds seconds;
    double load = 0;
  };

  const Network& network_;
  const ClusterProfile& cluster_;
  const SearchOptions& options_;
  const RegionTable& regions_;
  std::vector<Index> limits_;  // [rank]
  std::unordered_map<std::uint64_t, Known> known_;
  std::unordered_map<int, OverlapIndex> owners_;  // by number of their regions
  TransferLoad load_;
};

}  // namespace tessera::partitioner
