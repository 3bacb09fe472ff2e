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

// The rest of the tile, to be computed when all of the input is there.
[[nodiscard]] std::vector<TilePart> border(const Region& computed, const Region& interior);

// Fills `forward_parts` and `prepares_filters` of plan.layers: a tile's interior and its border, or
// images in turn as they arrive, or the whole tile when all of its input is there. Replaces
// transfers by one for each part, where a rank computes images of a tile in turn. Requires that
// plan.transfers are those of maps.
void plan_forward_parts(const Network& network, Plan& plan);

}  // namespace tessera::partitioner
