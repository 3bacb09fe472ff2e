// Which of many regions a region meets, without asking each: regions of a grid share their ranges,
// and one comparison of a range stands for all that have it.

#pragma once

#include <vector>

#include "partitioner/base/region.h"

namespace tessera {

class OverlapIndex {
 public:
  // Empty regions meet nothing.
  explicit OverlapIndex(const std::vector<Region>& regions);

  // Calls visit(number, shared part) for each region that meets `region`, once.
  template <class Visit>
  void for_each(const Region& region, Visit visit) const {
    for (const Slab& slab : slabs_) {
      if (intersect(slab.images, region.images).empty() ||
          intersect(slab.channels, region.channels).empty()) {
        continue;
      }
      for (const Band& band : slab.bands) {
        if (intersect(band.rows, region.rows).empty()) {
          continue;
        }
        for (const auto& [cols, number] : band.tiles) {
          const Region shared = intersect({slab.images, slab.channels, band.rows, cols}, region);
          if (!shared.empty()) {
            visit(number, shared);
          }
        }
      }
    }
  }

 private:
  struct Tile {
    Range cols;
    int number = 0;
  };
  struct Band {
    Range rows;
    std::vector<Tile> tiles;
  };
  struct Slab {
    Range images;
    Range channels;
    std::vector<Band> bands;
  };
  std::vector<Slab> slabs_;
};

}  // namespace tessera
