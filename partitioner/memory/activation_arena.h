// Where everything between the layers lies in memory on one rank: maps, their gradients, and what
// layers keep for their backward pass. Each is needed for a part of the step only, so that most of
// it can take turns in the same place. Offsets and sizes are bytes.
//
// Time, in a step of n layers: -1 the image; l the forward pass of layer l; n the gradient of the
// output; then for each layer, last to first, n + 2 moments. In the first n, where the layer is the
// last of a recomputed group, the layers of that group run again: layer l in moment l of them. In
// the next the gradient of the layer's output becomes that of its pre-activations (in layers that
// have any), in the last it goes on to parameters and inputs.
//
// A normalised map that is stored nowhere else is computed twice rather than kept: its
// pre-activations are kept, and the map comes back from them for the backward passes of those who
// read it. In a recomputed group the pre-activations are not kept either: see
// partitioner/plan/recomputation.h.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

// When `layer` runs again, in a group that ends at `last`.
[[nodiscard]] inline int recompute_time(const Network& network, int last, int layer) {
  return network.size() + 1 + (network.size() + 2) * (network.size() - 1 - last) + layer;
}
[[nodiscard]] inline int gradient_time(const Network& network, int layer) {
  return recompute_time(network, layer, network.size());
}
[[nodiscard]] inline int last_time(const Network& network) {
  return gradient_time(network, kImage) + 1;
}

struct MemorySlot {
  Index offset = 0;
  Index bytes = 0;  // 0: not needed
  int from = 0;     // times, both included
  int to = 0;

  // Whether both are needed at some time.
  [[nodiscard]] bool meets(const MemorySlot& other) const {
    return from <= other.to && other.from <= to;
  }
};

struct ArenaOptions {
  Index scalar_bytes = 4;
  bool training = true;         // false: forward only
  bool image_gradient = false;  // the gradient of the network's input is wanted too
  bool keep_maps = false;       // each thing has a place of its own, to be looked at afterwards
};

struct ActivationArena {
  // By buffer of the plan.
  using OfBuffers = IndexedVector<BufferIndex, MemorySlot>;
  OfBuffers values;
  OfBuffers recomputed;  // values once more, for the map's own recomputed group
  OfBuffers restored;    // values recomputed from pre-activations
  OfBuffers gradients;
  // By layer.
  std::vector<MemorySlot> pre_activations;  // what activations start from, apart from the output
  std::vector<MemorySlot> recomputed_pre_activations;
  std::vector<MemorySlot> pre_activation_gradients;  // where apart from the output's gradient
  std::vector<MemorySlot> argmax;                    // of max-pools, a byte each
  std::vector<MemorySlot> recomputed_argmax;
  std::vector<RecomputedLayer> again;  // what runs once more before its group's backward pass

  // The max-pool that takes the layer's output while it is being made, so that this never stands in
  // memory: a fusable_pool() on a rank that neither sends nor gets any of that map, and in the same
  // group where one is recomputed. kNoLayer if there is none.
  std::vector<int> fused_pool;
  // The max-pool from whose argmax the gradient of the layer's weights is summed, fused or not: a
  // fusable_pool() of a layer that weights_from_argmax(), on such a rank. kNoLayer if there is
  // none.
  std::vector<int> argmax_pool;
  Index bytes = 0;
};

[[nodiscard]] ActivationArena activation_arena(const Network& network,
                                               const Plan& plan,
                                               int rank,
                                               const ArenaOptions& options);

// The bytes of every rank's arena. Most ranks want the same at the same times: that is laid out
// once.
[[nodiscard]] std::vector<Index> arena_bytes_of_ranks(const Network& network,
                                                      const Plan& plan,
                                                      const ArenaOptions& options);

// What the arena of a training step holds, in bytes.
struct ActivationKinds {
  // From forward to backward pass:
  Index maps = 0;
  Index pre_activations = 0;
  Index argmax = 0;
  // The rest of the arena: gradients, and maps that are needed for a moment.
  Index turns = 0;
  // What would be kept if each backward pass found its inputs once, and nothing were computed
  // again.
  Index least = 0;
};
[[nodiscard]] ActivationKinds activation_kinds(const Network& network,
                                               const Plan& plan,
                                               int rank,
                                               const ArenaOptions& options);

}  // namespace tessera::partitioner
