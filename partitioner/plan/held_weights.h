// What a rank computes while the sums of a normalised layer's backward pass are on their way: the
// gradient of the weights of the layer before it in that pass, which nobody waits for. Where
// messages with gradients of the maps in between are under way as well, half of it hides these.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"
#include "partitioner/plan/recomputation.h"

namespace tessera::partitioner {

struct HeldWeights {
  // The normalised layer, the only input or what a max-pool in between reads, for whose sums the
  // weights are held back. kNoLayer where their gradient is computed at once: on one rank, or where
  // a recomputed group ends in between, since what runs again takes memory.
  int next = kNoLayer;
  // Of the cells that the gradient is a sum over, the first half is summed at once. Also where
  // nothing is held back for a recomputed group: recomputing changes no bit.
  bool half = false;

  friend bool operator==(const HeldWeights&, const HeldWeights&) = default;
};

// By layer.
[[nodiscard]] std::vector<HeldWeights> held_weights(const Network& network, const Plan& plan);

// Cells of a layer's output, by when the gradient of its weights is summed over them: one part
// after the other.
struct WeightParts {
  std::vector<Region> at_once;
  std::vector<Region> held;
};

// Of the layer's tile.backward on a rank. Halves are images or, of a single one, rows, whole tiles
// of `kernel`; what cannot be halved like that is summed at once.
[[nodiscard]] WeightParts weight_parts(const HeldWeights& held,
                                       ConvolutionKernel kernel,
                                       const Region& backward);

}  // namespace tessera::partitioner
