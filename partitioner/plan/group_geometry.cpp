#include "partitioner/plan/group_geometry.h"

#include <algorithm>
#include <utility>

#include "partitioner/base/overlaps.h"
#include "partitioner/plan/cut_mapping.h"

namespace tessera::partitioner {

namespace {

Region clipped(const Network& network, int map, const Region& region) {
  Region whole = whole_map(network, map, 0);
  whole.images = region.images;
  return intersect(region, whole);
}

// Where a tile of the group's cut is in the geometry.
struct Place {
  Index tile = 0;
  std::size_t at = 0;
};

class GeometryMaker {
 public:
  // A geometry of as many as `size` places.
  GeometryMaker(const Network& network,
                const Group& group,
                std::vector<Place> places,
                std::size_t size)
      : network_(network), group_(group), places_(std::move(places)) {
    geometry_.first = group.first;
    geometry_.last = group.last;
    geometry_.recompute = group.recompute;
    geometry_.tiles.assign(static_cast<std::size_t>(group.last - group.first) + 1,
                           std::vector<Tile>(size));
  }

  GroupGeometry make(Index batch) {
    const std::vector<MapCut> cuts = cuts_of_group(network_, group_, batch);
    for (std::size_t layer = 0; layer < cuts.size(); ++layer) {
      for (const Place& place : places_) {
        Tile& tile = geometry_.tiles[layer][place.at];
        tile.owned = tile_region(cuts[layer], place.tile);
        tile.computed = tile.owned;
        tile.backward = tile.owned;
      }
    }
    for (int layer = group_.last; layer >= group_.first; --layer) {
      const auto& reduced = group_.reduce_to_owner;
      if (network_.takes_gradient(layer) &&
          std::find(reduced.begin(), reduced.end(), layer) != reduced.end()) {
        reduce_to_owners(layer);
      }
      require_inputs(layer);
    }
    std::reverse(geometry_.reductions.begin(), geometry_.reductions.end());
    return std::move(geometry_);
  }

 private:
  std::vector<Tile>& tiles(int layer) {
    return geometry_.tiles[static_cast<std::size_t>(layer - group_.first)];
  }

  // All readers of `layer` in the group have been here already.
  void reduce_to_owners(int layer) {
    std::vector<Region> owned;
    std::vector<Region> backward;
    for (const Tile& tile : tiles(layer)) {
      owned.push_back(tile.owned);
      backward.push_back(tile.backward);
    }
    OwnerReduction reduction{layer, messages_between(owned, backward)};
    std::erase_if(reduction.messages,
                  [](const Message& message) { return message.from == message.to; });
    for (Tile& tile : tiles(layer)) {
      tile.backward = tile.owned;
    }
    geometry_.reductions.push_back(std::move(reduction));
  }

  void require_inputs(int layer) {
    const auto& inputs = network_.layer(layer).inputs;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const int map = inputs[input];
      const auto require = [&](const Region& output) {
        return clipped(network_, map, required_input(network_, layer, input, output));
      };
      for (const auto [_, at] : places_) {
        const Tile& tile = tiles(layer)[at];
        if (map >= group_.first) {
          Tile& below = tiles(map)[at];
          below.computed = hull(below.computed, require(tile.computed));
          below.backward = hull(below.backward, require(tile.backward));
        } else {
          auto& regions = geometry_.required[map];
          regions.resize(tiles(layer).size());
          regions[at] = hull(regions[at], require(tile.computed));
        }
      }
    }
  }

  const Network& network_;
  const Group& group_;
  std::vector<Place> places_;
  GroupGeometry geometry_;
};

}  // namespace

GroupGeometry group_geometry(const Network& network, const Group& group, int ranks, Index batch) {
  std::vector<Place> places;
  places.reserve(group.ranks.size());
  for (const int rank : group.ranks) {
    places.push_back({std::ssize(places), static_cast<std::size_t>(rank)});
  }
  return GeometryMaker(network, group, std::move(places), static_cast<std::size_t>(ranks))
      .make(batch);
}

GroupGeometry group_geometry_of(const Network& network,
                                const Group& group,
                                const std::vector<int>& looked_at,
                                Index batch) {
  std::vector<Place> places;
  for (std::size_t at = 0; at < looked_at.size(); ++at) {
    const auto found = std::lower_bound(group.ranks.begin(), group.ranks.end(), looked_at[at]);
    if (found != group.ranks.end() && *found == looked_at[at]) {
      places.push_back({found - group.ranks.begin(), at});
    }
  }
  return GeometryMaker(network, group, std::move(places), looked_at.size()).make(batch);
}

std::vector<Region> owned_image(const Network& network,
                                const Group& first,
                                int ranks,
                                Index batch) {
  std::vector<Region> owned(static_cast<std::size_t>(ranks));
  const MapCut cut = cut_of_image(network, first, batch);
  for (std::size_t t = 0; t < first.ranks.size(); ++t) {
    owned[static_cast<std::size_t>(first.ranks[t])] = tile_region(cut, static_cast<Index>(t));
  }
  return owned;
}

std::vector<Message> messages_between(const std::vector<Region>& owned,
                                      const std::vector<Region>& required) {
  const OverlapIndex owners(owned);
  std::vector<Message> messages;
  for (std::size_t to = 0; to < required.size(); ++to) {
    if (required[to].empty()) {
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(messages.size());
    owners.for_each(required[to], [&](int from, const Region& shared) {
      messages.push_back({from, static_cast<int>(to), Payload::cells(shared)});
    });
    std::sort(messages.begin() + first, messages.end(), [](const Message& a, const Message& b) {
      return a.from < b.from;
    });
  }
  return messages;
}

}  // namespace tessera::partitioner
