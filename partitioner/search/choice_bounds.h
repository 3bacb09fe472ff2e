// For a search: what the rest of a network costs at least from each layer on, and which choices of
// groups can be part of a cheap partition at all.

#pragma once

#include <unordered_map>
#include <vector>

#include "partitioner/search/exchange_prices.h"
#include "partitioner/search/group_choices.h"
#include "partitioner/search/search_prices.h"

namespace tessera::partitioner {

class ChoiceBounds {
 public:
  // `all` are the choices by first layer; they must outlive it.
  explicit ChoiceBounds(const std::vector<std::vector<GroupChoice>>& all);

  // Prices from the end of the network back, as if exchanges cost nothing. With `every_variant`,
  // also of those that other groups cannot distinguish; otherwise the cheapest of them will do.
  void begin(const SearchPrices& prices, bool every_variant);

  // Leaves out choices of which every partition costs more than `limit`.
  void drop_above(double limit);

  // The same prices by who owns the map just before a layer, if exchanges of all other maps cost
  // nothing. In a chain of layers that is what it really takes. Of what costs more than `limit`
  // these may say less than the truth.
  void count_last_map(ExchangePrices& exchanges, double limit);

  // Choices that begin with a layer, in the order of what they make possible.
  [[nodiscard]] const std::vector<const GroupChoice*>& choices(int first) const {
    return choices_[static_cast<std::size_t>(first)];
  }

  // The least price of a choice and all that follows, without exchanges.
  [[nodiscard]] double through(const GroupChoice& choice) const {
    return prices_.price(choice) + to_end_[next_of(choice)];
  }

  // The least price of what follows a choice.
  [[nodiscard]] double after(const GroupChoice& choice) const {
    return from(choice.group.last + 1, regions_of_last_map(choice));
  }

  // ... and from a layer on, where the map before it has the regions of this number.
  [[nodiscard]] double from(int first, int regions) const {
    const auto& bounds = to_end_from_[static_cast<std::size_t>(first)];
    const auto found = bounds.find(regions);
    return found == bounds.end() ? to_end_[static_cast<std::size_t>(first)] : found->second;
  }

  // Whether a way that ends with a choice takes more memory than the prices allow.
  [[nodiscard]] bool takes_too_much(const MemoryLoad& load, const GroupChoice& last) const {
    return load.total() + fixed_to_end_[next_of(last)] > prices_.memory.most;
  }

 private:
  [[nodiscard]] static std::size_t next_of(const GroupChoice& choice) {
    return static_cast<std::size_t>(choice.group.last) + 1;
  }
  // The number of the regions of the map that a group ends with, where someone reads it.
  [[nodiscard]] static int regions_of_last_map(const GroupChoice& choice) {
    const bool read = !choice.makes.empty() && choice.makes.back().map == choice.group.last;
    return read ? choice.makes.back().regions : kNoRegions;
  }
  [[nodiscard]] double least_with_last_map(std::size_t first,
                                           int owned,
                                           ExchangePrices& exchanges,
                                           double limit) const;

  const std::vector<std::vector<GroupChoice>>& all_;
  SearchPrices prices_;
  std::vector<double> fixed_to_end_;  // by layer: load that is there throughout, at least
  std::vector<std::vector<const GroupChoice*>> choices_;  // by first layer
  std::vector<double> to_end_;      // by layer: the least price from it on, without exchanges
  std::vector<double> from_start_;  // ... and up to it
  // By layer and regions of the map before it: the same with exchanges of that map.
  std::vector<std::unordered_map<int, double>> to_end_from_;
};

}  // namespace tessera::partitioner
