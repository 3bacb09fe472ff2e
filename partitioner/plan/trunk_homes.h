// The maps of the frozen trunk where they are kept: what a pass is spared that is given them, and
// what each rank has of them, image by image. An image that comes back may stand at another place
// of a pass, where other ranks compute it.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// By action of a schedule of the plan: whether it is not performed in a forward pass that is given
// the maps.
[[nodiscard]] IndexedVector<ActionIndex, bool> actions_of_trunk(const Network& network,
                                                                const Plan& plan,
                                                                const Schedule& schedule);

// By action of a schedule: the map of the trunk that is there when it is done, in the forward pass;
// kNoMap: none. It need not be there for longer than what comes next.
inline constexpr int kNoMap = kImage - 1;
[[nodiscard]] IndexedVector<ActionIndex, int> completed_trunk_maps(const Network& network,
                                                                   const Schedule& schedule);

// Why the maps cannot be kept by this plan, for people; nothing where they can.
[[nodiscard]] std::optional<std::string> trunk_obstacle(const Network& network, const Plan& plan);

// Cells of one image, whose number in all regions is 0; empty where a rank has none.
struct TrunkHome {
  std::vector<std::vector<Region>> computed;  // [map of FrozenTrunk::maps][rank]
  std::vector<std::vector<Region>> owned;
  friend bool operator==(const TrunkHome&, const TrunkHome&) = default;
};

struct TrunkHomes {
  std::vector<int> of_image;  // by place in a pass: in `homes`
  std::vector<TrunkHome> homes;
};

[[nodiscard]] TrunkHomes trunk_homes(const Network& network, const Plan& plan);

// Values that a rank keeps of an image of that home.
[[nodiscard]] Index kept_values(const TrunkHome& home, int rank);

// Cells that one rank has kept and another, or the same, wants.
struct TrunkPiece {
  int map = 0;  // in FrozenTrunk::maps
  int from = 0;
  int to = 0;
  Region cells;
  friend bool operator==(const TrunkPiece&, const TrunkPiece&) = default;
};

// All that ranks compute of an image of the home `to`, from one of the home `from`: what a rank has
// itself from there, else from the owners.
[[nodiscard]] std::vector<TrunkPiece> trunk_pieces(const TrunkHome& from, const TrunkHome& to);

}  // namespace tessera::partitioner
