// What a rank can compute of a convolution while cells of its input are still under way: so that
// messages and computing overlap.

#pragma once

#include <vector>

#include "partitioner/plan.h"

namespace partitioner {

// The part of the layer's tile whose windows lie in cells that the rank owns, or beside the map;
// empty where that is too little to be worth it, where nothing is under way or so little that
// waiting takes less time than transforming filters again, or for other layers than convolutions.
// Its edges inside the tile lie where kernels lose nothing by stopping: on Winograd's grid of
// tiles, and whole runs of cells away from the tile's own edge.
[[nodiscard]] Region interior(const Network& network, const Plan& plan, int layer, int rank);

// A part of a tile, in the order in which they are computed.
struct TilePart {
  Region region;
  bool ends_lines = true;  // each of its rows is then there from end to end
};

// The rest of the tile, to be computed when all of the input is there.
[[nodiscard]] std::vector<TilePart> border(const Region& computed, const Region& interior);

}  // namespace partitioner
