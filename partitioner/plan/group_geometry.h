// The geometry of one group by itself: what each rank owns, computes and requires. Plans are made
// of the geometries of their groups; a search looks at many groups and few whole plans.

#pragma once

#include <map>
#include <vector>

#include "partitioner/base/overlaps.h"
#include "partitioner/network/network.h"
#include "partitioner/partition/partition.h"
#include "partitioner/plan/message.h"

namespace tessera::partitioner {

// One map on one rank.
struct Tile {
  Region owned;
  Region computed;  // inside the map; holds `owned`
  Region backward;  // where the layer's backward pass runs: holds `owned`, lies in `computed`
};

// A map within a group whose gradient is reduced to its owner: from there on the backward pass goes
// over owned cells only. Messages from owner to computing rank, sorted by `to`, then `from`; they
// run backward only.
struct OwnerReduction {
  int map = kImage;
  std::vector<Message> messages;
};

struct GroupGeometry {
  int first = 0;  // layers [first, last]
  int last = 0;
  std::vector<std::vector<Tile>> tiles;         // [layer - first][rank]
  std::map<int, std::vector<Region>> required;  // of maps from outside: [rank], inside the map
  std::vector<OwnerReduction> reductions;       // by map
  bool recompute = false;                       // see recomputation.h

  [[nodiscard]] const std::vector<Tile>& tiles_of(int layer) const {
    return tiles[static_cast<std::size_t>(layer - first)];
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(tiles.front().size()); }
};

[[nodiscard]] GroupGeometry group_geometry(const Network& network,
                                           const Group& group,
                                           int ranks,
                                           Index batch);

// The same of some ranks alone, `looked_at` in rising order, in whose order tiles and regions are:
// what they own, compute and require is what it is in the whole. Messages are those between them.
// The group's ranks must rise, too.
[[nodiscard]] GroupGeometry group_geometry_of(const Network& network,
                                              const Group& group,
                                              const std::vector<int>& looked_at,
                                              Index batch);

// What each rank owns of the image where every rank reads its own, by the first group's cut.
[[nodiscard]] std::vector<Region> owned_image(const Network& network,
                                              const Group& first,
                                              int ranks,
                                              Index batch);

// What ranks that own the regions of a map send those who require some of it, sorted by `to`, then
// `from`; messages to oneself included.
[[nodiscard]] std::vector<Message> messages_between(const std::vector<Region>& owned,
                                                    const std::vector<Region>& required);

}  // namespace tessera::partitioner
