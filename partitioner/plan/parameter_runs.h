// How the elements of a parameter tensor are shared: who computes with them, and who owns which.

#pragma once

#include <vector>

#include "partitioner/plan/group_geometry.h"

namespace tessera::partitioner {

// A run of elements that the same ranks hold, each of which owns a part of it: rank i of them the
// next shares[i] elements, from `begin` on.
struct SharedRun {
  Index begin = 0;
  std::vector<int> ranks;
  std::vector<Index> shares;
};

// Each run of channels that the same ranks compute is divided evenly among them.
[[nodiscard]] std::vector<SharedRun> shared_runs(const ParameterShape& shape,
                                                 const std::vector<Tile>& tiles);

}  // namespace tessera::partitioner
