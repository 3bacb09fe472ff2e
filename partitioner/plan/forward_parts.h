// The parts of a tile that a rank computes one after the other while cells of a convolution's input
// are still under way: so that messages and computing overlap.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// The first layer of the group that reads the map: the one that waits for it. The number of layers
// where none does.
[[nodiscard]] int first_reader(const Network& network, const Plan& plan, int map, int group);

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
  int awaits = 0;          // exchanges of the input's map with a lower `part` have to be there
};

// The rest of the tile, to be computed when all of the input is there.
[[nodiscard]] std::vector<TilePart> border(const Region& computed, const Region& interior);

// All parts of the layer's tile: its interior and its border, or images in turn as they arrive.
// Where the tile is computed as a whole when all of its input is there: one part, if something can
// be done for it before, else none.
[[nodiscard]] std::vector<TilePart> forward_parts(const Network& network,
                                                  const Plan& plan,
                                                  int layer,
                                                  int rank);

// Replaces exchanges by one for each part, where a rank computes images of a tile in turn.
void split_exchanges(const Network& network, Plan& plan);

}  // namespace tessera::partitioner
