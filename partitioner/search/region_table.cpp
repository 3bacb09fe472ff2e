#include "partitioner/search/region_table.h"

#include <algorithm>
#include <utility>

namespace tessera::partitioner {

namespace {

std::vector<Index> numbers_of(const RegionsOfRanks& regions,
                              const std::optional<RegionProduct>& product) {
  std::vector<Index> numbers;
  numbers.reserve(regions.size() * 8);
  for (const Region& region : regions) {
    if (region.empty()) {
      numbers.push_back(-1);
      continue;
    }
    for (const auto dimension : kDimensions) {
      numbers.push_back((region.*dimension).begin);
      numbers.push_back((region.*dimension).end);
    }
  }
  for (std::size_t dimension = 0; product && dimension < kDimensions.size(); ++dimension) {
    for (const Range& range : product->parts[dimension]) {
      numbers.push_back(range.begin);
      numbers.push_back(range.end);
    }
  }
  return numbers;
}

}  // namespace

std::optional<RegionProduct> product_of(const Group& group,
                                        const RegionsOfRanks& regions,
                                        const std::vector<int>& ranks) {
  if (!group.bands.empty()) {
    return std::nullopt;
  }
  const std::array parts{
      group.images.parts, group.channels.parts, group.rows.parts, group.cols.parts};
  const auto position = [&ranks](int rank) {
    return ranks.empty() ? rank
                         : std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
  };
  RegionProduct product;
  Index stride = group.tiles();
  for (std::size_t d = 0; d < parts.size(); ++d) {
    stride /= parts[d];
    for (Index part = 0; part < parts[d]; ++part) {
      const int rank = group.ranks[static_cast<std::size_t>(part * stride)];
      product.parts[d].push_back(regions[static_cast<std::size_t>(position(rank))].*kDimensions[d]);
    }
  }
  for (std::size_t at = 0; at < regions.size(); ++at) {
    const int rank = ranks.empty() ? static_cast<int>(at) : ranks[at];
    const auto found = std::lower_bound(group.ranks.begin(), group.ranks.end(), rank);
    std::array<int, 4>& place = product.places.emplace_back();
    if (found == group.ranks.end() || *found != rank) {
      place.fill(-1);
      continue;
    }
    Index tile = found - group.ranks.begin();
    Region expected;
    for (std::size_t d = parts.size(); d-- > 0; tile /= parts[d]) {
      place[d] = static_cast<int>(tile % parts[d]);
      expected.*kDimensions[d] = product.parts[d][static_cast<std::size_t>(place[d])];
    }
    if (regions[at] != expected || expected.empty()) {
      return std::nullopt;
    }
  }
  return product;
}

int RegionTable::number(const RegionsOfRanks& regions, std::optional<RegionProduct> product) {
  const auto [found, is_new] =
      numbers_.try_emplace(numbers_of(regions, product), static_cast<int>(known_.size()));
  if (is_new) {
    known_.push_back(std::make_unique<Known>(Known{regions, std::move(product)}));
  }
  return found->second;
}

}  // namespace tessera::partitioner
