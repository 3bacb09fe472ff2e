#include "partitioner/search/choice_bounds.h"

#include <algorithm>

namespace tessera::partitioner {

ChoiceBounds::ChoiceBounds(const std::vector<std::vector<GroupChoice>>& all) : all_(all) {
  fixed_to_end_.assign(all.size() + 1, kInfiniteRate);
  fixed_to_end_.back() = 0;
  for (std::size_t first = all.size(); first-- > 0;) {
    for (const GroupChoice& choice : all[first]) {
      fixed_to_end_[first] =
          std::min(fixed_to_end_[first], choice.fixed + fixed_to_end_[next_of(choice)]);
    }
  }
}

void ChoiceBounds::begin(const SearchPrices& prices, bool every_variant) {
  prices_ = prices;
  const std::size_t layers = all_.size();
  to_end_.assign(layers + 1, kInfiniteRate);
  to_end_[layers] = 0;
  to_end_from_.assign(layers + 1, {});
  choices_.assign(layers, {});
  for (std::size_t first = layers; first-- > 0;) {
    auto& choices = choices_[first];
    for (const GroupChoice& choice : all_[first]) {
      if (takes_too_much(MemoryLoad{}.with(choice, 0), choice)) {
        continue;
      }
      // Variants of a group follow each other.
      if (every_variant || choices.empty() || !choice.passes_for(*choices.back())) {
        choices.push_back(&choice);
      } else if (prices_.price(choice) < prices_.price(*choices.back())) {
        choices.back() = &choice;
      }
    }
    std::stable_sort(choices.begin(), choices.end(), [this](const auto* a, const auto* b) {
      return through(*a) < through(*b);
    });
    if (!choices.empty()) {
      to_end_[first] = through(*choices.front());
    }
  }
}

void ChoiceBounds::drop_above(double limit) {
  from_start_.assign(choices_.size() + 1, kInfiniteRate);
  from_start_[0] = 0;
  for (std::size_t first = 0; first < choices_.size(); ++first) {
    for (const GroupChoice* choice : choices_[first]) {
      double& there = from_start_[next_of(*choice)];
      there = std::min(there, from_start_[first] + prices_.price(*choice));
    }
    std::erase_if(choices_[first], [&](const GroupChoice* choice) {
      return from_start_[first] + through(*choice) > limit;
    });
  }
}

void ChoiceBounds::count_last_map(ExchangePrices& exchanges, double limit) {
  for (const auto& choices : choices_) {
    for (const GroupChoice* choice : choices) {
      to_end_from_[next_of(*choice)][regions_of_last_map(*choice)] = 0;
    }
  }
  for (std::size_t first = choices_.size(); first-- > 0;) {
    for (auto& [owned, least] : to_end_from_[first]) {
      least = least_with_last_map(first, owned, exchanges, limit);
    }
  }
}

double ChoiceBounds::least_with_last_map(std::size_t first,
                                         int owned,
                                         ExchangePrices& exchanges,
                                         double limit) const {
  const int map = static_cast<int>(first) - 1;
  double least = (limit - from_start_[first]) * (1 + kRounding);
  for (const GroupChoice* choice : choices_[first]) {
    if (through(*choice) >= least) {
      break;
    }
    double price = prices_.price(*choice) + after(*choice);
    if (price >= least) {
      continue;
    }
    for (const MapRegions& reads : choice->reads) {
      price += reads.map == map
                   ? exchanges.priced(map, owned, reads.regions, prices_, least - price).price
                   : 0;
    }
    least = std::min(least, price);
  }
  return least;
}

}  // namespace tessera::partitioner
