// For a search: regions of a map by rank, each set of them kept once and numbered. Two choices with
// the same regions are alike to whoever reads or writes them.

#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

using RegionsOfRanks = std::vector<Region>;

// The dimensions of a region, in the order in which tiles are numbered.
inline constexpr std::array kDimensions{
    &Region::images, &Region::channels, &Region::rows, &Region::cols};

// Of regions that a grid of tiles has: what each part of a dimension has of it, whatever its other
// dimensions are. So what meets what is known without looking at all pairs of ranks.
struct RegionProduct {
  std::array<std::vector<Range>, 4> parts = {};  // by dimension
  // The part in each dimension of each rank that is looked at; of those without a tile, -1.
  std::vector<std::array<int, 4>> places = {};
};

// `regions` are those of `ranks` in rising order, or of all where these are empty; every rank of
// the group that has tiles 0 of all dimensions but one is among them. Nothing where some rank has
// something else than the product, or nothing at all.
[[nodiscard]] std::optional<RegionProduct> product_of(const Group& group,
                                                      const RegionsOfRanks& regions,
                                                      const std::vector<int>& ranks);

class RegionTable {
 public:
  // The product is that of these regions, if they are one.
  [[nodiscard]] int number(const RegionsOfRanks& regions,
                           std::optional<RegionProduct> product = std::nullopt);
  [[nodiscard]] const RegionsOfRanks& at(int number) const { return known(number).regions; }
  [[nodiscard]] const std::optional<RegionProduct>& product(int number) const {
    return known(number).product;
  }

 private:
  struct Known {
    RegionsOfRanks regions;
    std::optional<RegionProduct> product;
  };
  [[nodiscard]] const Known& known(int number) const {
    return *known_[static_cast<std::size_t>(number)];
  }

  std::map<std::vector<Index>, int> numbers_;
  std::vector<std::unique_ptr<Known>> known_;
};

}  // namespace tessera::partitioner
