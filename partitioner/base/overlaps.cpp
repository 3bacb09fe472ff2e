#include "partitioner/base/overlaps.h"

#include <algorithm>

namespace tessera {

OverlapIndex::OverlapIndex(const std::vector<Region>& regions) {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Region& region = regions[i];
    if (region.empty()) {
      continue;
    }
    auto slab = std::find_if(slabs_.begin(), slabs_.end(), [&region](const Slab& other) {
      return other.images == region.images && other.channels == region.channels;
    });
    if (slab == slabs_.end()) {
      slab = slabs_.insert(slabs_.end(), {region.images, region.channels, {}});
    }
    auto& bands = slab->bands;
    auto band = std::find_if(bands.begin(), bands.end(), [&region](const Band& other) {
      return other.rows == region.rows;
    });
    if (band == bands.end()) {
      band = bands.insert(bands.end(), {region.rows, {}});
    }
    band->tiles.push_back({region.cols, static_cast<int>(i)});
  }
}

}  // namespace tessera
