// What is decided of one layer beside its geometry and kernels: in which parts a rank computes its
// tile, which pool is fused with it, and what runs again for the backward pass.

#pragma once

#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

inline constexpr int kNoLayer = -1;

// A part of a tile, in the order in which they are computed.
struct TilePart {
  Region region;
  bool ends_lines = true;  // each of its rows is then there from end to end
  int awaits = 0;          // transfers of the input's map with a lower `part` have to be there
  friend bool operator==(const TilePart&, const TilePart&) = default;
};

// Cells of a layer's output, by when the gradient of its weights is summed over them: one region
// after the other.
struct WeightParts {
  std::vector<Region> at_once;
  std::vector<Region> deferred;
  friend bool operator==(const WeightParts&, const WeightParts&) = default;
};

// When the gradient of a layer's weights is computed, on all ranks; see deferred_weights.h.
struct DeferredWeights {
  // The normalised layer, the only input or what a max-pool in between reads, during whose batch
  // statistics the gradient is computed. kNoLayer where it is computed at once: on one rank, or
  // where a recomputed group ends in between, since what runs again takes memory.
  int next = kNoLayer;
  // The first half of the cells that the gradient is a sum over is summed at once. Also where
  // nothing is deferred for a recomputed group: recomputing changes no bit.
  bool half = false;

  friend bool operator==(const DeferredWeights&, const DeferredWeights&) = default;
};

// How a layer of a recomputed group runs before the group's backward pass.
struct RecomputedLayer {
  bool runs = false;
  bool output = false;  // assigns its output, or that of its fused pool; else its pre-activations
  friend bool operator==(const RecomputedLayer&, const RecomputedLayer&) = default;
};

// What is planned for one layer on one rank.
struct LayerPlan {
  std::vector<TilePart> forward_parts;  // together all that the rank computes
  bool prepares_filters = false;        // once for all parts, before the first of them
  WeightParts weight_parts;             // together tile.backward, of layers that have weights
  // The max-pool that takes the layer's output while it is being made, so that this never stands in
  // memory: a fusable_pool() on a rank that neither sends nor gets any of that map, and in the same
  // group where one is recomputed. kNoLayer if there is none.
  int fused_pool = kNoLayer;
  // The max-pool by whose argmax indices the gradient of the layer's weights is summed, fused or
  // not: a fusable_pool() of a layer that weights_from_argmax(), on such a rank. kNoLayer if there
  // is none.
  int argmax_pool = kNoLayer;
  RecomputedLayer recompute;
  // Whether the output, normalised, is not kept for the backward pass but comes back from
  // pre-activations: on a rank that neither sends nor gets any of it and has it nowhere else, and
  // in a recomputed group, on all.
  bool restores_output = false;

  friend bool operator==(const LayerPlan&, const LayerPlan&) = default;
};

struct Plan;

// For each rank, by map: whether cells of that map travel to or from it, or between two of its
// buffers.
[[nodiscard]] std::vector<IndexedVector<MapSlot, bool>> exchanged_maps(const Plan& plan);

// Fills plan.layers but for the parts of tiles. Requires buffers and transfers of maps.
void plan_layers(const Network& network, Plan& plan);

}  // namespace tessera::partitioner
