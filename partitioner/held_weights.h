// What a rank computes while the sums of a normalised layer's backward pass are on their way: the
// gradient of the weights of the layer before it in that pass, which nobody waits for.

#pragma once

#include <vector>

#include "partitioner/plan.h"

namespace partitioner {

// By layer: the normalised layer, its only input or what a max-pool in between reads, for whose
// sums its weights are held back. kNoLayer where their gradient is computed at once: on one
// rank, where messages with gradients of the maps in between are under
// way, which it hides instead, or where a recomputed group ends in between, since what runs again
// takes memory.
[[nodiscard]] std::vector<int> held_weights(const Network& network, const Plan& plan);

}  // namespace partitioner
