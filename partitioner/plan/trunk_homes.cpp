#include "partitioner/plan/trunk_homes.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "partitioner/network/frozen_trunk.h"

namespace tessera::partitioner {

namespace {

// What the region has of one image, as image 0.
Region of_image(Region region, Index image) {
  const bool has_it = region.images.begin <= image && image < region.images.end;
  region.images = {0, 1};
  return has_it && !region.empty() ? region : Region{};
}

TrunkHome home_of(const std::vector<int>& maps, const Plan& plan, Index image) {
  TrunkHome home;
  for (const int map : maps) {
    std::vector<Region>& computed = home.computed.emplace_back();
    std::vector<Region>& owned = home.owned.emplace_back();
    for (const Tile& tile : plan.tiles_of(map)) {
      computed.push_back(of_image(tile.computed, image));
      owned.push_back(of_image(tile.owned, image));
    }
  }
  return home;
}

// Whether a layer of the transfer's group that is behind the trunk reads the map.
bool is_read_behind(const Network& network, const Plan& plan, const Transfer& transfer, int last) {
  for (int layer = last + 1; layer < network.size(); ++layer) {
    const std::vector<int>& inputs = network.layer(layer).inputs;
    if (plan.group(layer) == transfer.group &&
        std::find(inputs.begin(), inputs.end(), transfer.subject) != inputs.end()) {
      return true;
    }
  }
  return false;
}

// Whether the cells of all images are cut alike, whoever computes them.
bool cuts_images_alike(const Plan& plan, int map) {
  const auto cells_of = [&](Index image) {
    std::vector<std::array<Index, 4>> cells;
    for (const Tile& tile : plan.tiles_of(map)) {
      const Region cut = of_image(tile.computed, image);
      if (!cut.empty()) {
        cells.push_back({cut.rows.begin, cut.rows.end, cut.cols.begin, cut.cols.end});
      }
    }
    std::sort(cells.begin(), cells.end());
    return cells;
  };
  for (Index image = 1; image < plan.batch; ++image) {
    if (cells_of(image) != cells_of(0)) {
      return false;
    }
  }
  return true;
}

}  // namespace

IndexedVector<ActionIndex, bool> actions_of_trunk(const Network& network,
                                                  const Plan& plan,
                                                  const Schedule& schedule) {
  const int last = frozen_trunk(network).last;
  IndexedVector<ActionIndex, bool> spared(schedule.actions.size(), false);
  if (last < 0) {
    return spared;
  }
  for (ActionIndex i = schedule.forward.begin; i < schedule.forward.end; ++i) {
    const Action& action = schedule.actions[i];
    if (action.kind == Action::Kind::Compute) {
      spared[i] = action.layer <= last;
      continue;
    }
    const Transfer& transfer = plan.transfers[action.transfer];
    spared[i] = transfer.kind == TransferKind::FeatureMap && transfer.subject <= last &&
                !is_read_behind(network, plan, transfer, last);
  }
  return spared;
}

IndexedVector<ActionIndex, int> completed_trunk_maps(const Network& network,
                                                     const Schedule& schedule) {
  IndexedVector<ActionIndex, int> completed(schedule.actions.size(), kNoMap);
  for (const int map : frozen_trunk(network).maps) {
    ActionIndex last;
    for (ActionIndex i = schedule.forward.begin; i < schedule.forward.end; ++i) {
      const Action& action = schedule.actions[i];
      if (action.kind == Action::Kind::Compute && action.layer == map) {
        last = i;
      }
    }
    completed[last] = map;
  }
  return completed;
}

std::optional<std::string> trunk_obstacle(const Network& network, const Plan& plan) {
  const int last = frozen_trunk(network).last;
  if (plan.replicas.independent()) {
    return "replicas are independent";
  }
  for (const Action& action : plan.schedule.actions) {
    if (action.kind == Action::Kind::Compute && action.phase == Phase::Recompute &&
        action.layer <= last) {
      return fmt::format("layer {} is computed again in the backward pass", action.layer);
    }
  }
  for (int layer = 0; layer <= last; ++layer) {
    if (winograd_side(plan.kernels_of(layer).forward) != 0 && !cuts_images_alike(plan, layer)) {
      return fmt::format(
          "images are cut in several ways, and the last bits of layer {} by "
          "Winograd's algorithm depend on it",
          layer);
    }
  }
  for (const std::vector<LayerPlan>& layers : plan.layers) {
    for (int layer = 0; layer <= last; ++layer) {
      if (layers[static_cast<std::size_t>(layer)].fused_pool > last) {
        return fmt::format("the map of layer {} is not kept, but that of the max-pool behind it",
                           layer);
      }
    }
  }
  return std::nullopt;
}

TrunkHomes trunk_homes(const Network& network, const Plan& plan) {
  const FrozenTrunk trunk = frozen_trunk(network);
  TrunkHomes result;
  for (Index image = 0; image < plan.batch; ++image) {
    const TrunkHome home = home_of(trunk.maps, plan, image);
    const auto known = std::find(result.homes.begin(), result.homes.end(), home);
    result.of_image.push_back(static_cast<int>(known - result.homes.begin()));
    if (known == result.homes.end()) {
      result.homes.push_back(home);
    }
  }
  return result;
}

Index kept_values(const TrunkHome& home, int rank) {
  Index values = 0;
  for (const std::vector<Region>& computed : home.computed) {
    values += computed[static_cast<std::size_t>(rank)].volume();
  }
  return values;
}

std::vector<TrunkPiece> trunk_pieces(const TrunkHome& from, const TrunkHome& to) {
  std::vector<TrunkPiece> pieces;
  for (std::size_t map = 0; map < to.computed.size(); ++map) {
    const int number = static_cast<int>(map);
    const int ranks = static_cast<int>(to.computed[map].size());
    for (int receiver = 0; receiver < ranks; ++receiver) {
      const Region& wanted = to.computed[map][static_cast<std::size_t>(receiver)];
      if (wanted.empty()) {
        continue;
      }
      if (contains(from.computed[map][static_cast<std::size_t>(receiver)], wanted)) {
        pieces.push_back({number, receiver, receiver, wanted});
        continue;
      }
      for (int sender = 0; sender < ranks; ++sender) {
        const Region cells = intersect(from.owned[map][static_cast<std::size_t>(sender)], wanted);
        if (!cells.empty()) {
          pieces.push_back({number, sender, receiver, cells});
        }
      }
    }
  }
  return pieces;
}

}  // namespace tessera::partitioner
