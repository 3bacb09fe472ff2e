// The geometry of one group by itself: what plan.h has of all groups at once, for a search that
// looks at many groups and few whole plans. The same rules, and tested to give the same regions.

#pragma once

#include <map>
#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct GroupGeometry {
  int first = 0;  // layers [first, last]
  int last = 0;
  std::vector<std::vector<Tile>> tiles;         // [layer - first][rank]
  std::map<int, std::vector<Region>> required;  // of maps from outside: [rank], inside the map
  std::vector<Exchange> collapses;              // by map
  bool recompute = false;

  [[nodiscard]] const std::vector<Tile>& tiles_of(int layer) const {
    return tiles[static_cast<std::size_t>(layer - first)];
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(tiles.front().size()); }
};

[[nodiscard]] GroupGeometry group_geometry(const Network& network,
                                           const Group& group,
                                           int ranks,
                                           Index batch);

// The same, taken from a plan.
[[nodiscard]] GroupGeometry group_of_plan(const Network& network, const Plan& plan, int group);

// What each rank owns of the image where every rank reads its own, by the first group's cut.
[[nodiscard]] std::vector<Region> owned_image(const Network& network,
                                              const Group& first,
                                              int ranks,
                                              Index batch);

}  // namespace tessera::partitioner
