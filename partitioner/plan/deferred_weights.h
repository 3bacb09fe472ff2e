// What a rank computes while the batch statistics of a normalised layer's backward pass are on
// their way: the gradient of the weights of the layer before it in that pass, which nobody waits
// for. Where messages with gradients of the maps in between are under way as well, half of it hides
// these.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// By layer.
[[nodiscard]] std::vector<DeferredWeights> deferred_weights(const Network& network,
                                                            const Plan& plan);

// The parts of the layer's tile.backward on a rank. Halves are images or, of a single one, rows,
// whole tiles of `kernel`; what cannot be halved like that is summed at once.
[[nodiscard]] WeightParts weight_parts(const DeferredWeights& deferred,
                                       ConvolutionKernel kernel,
                                       const Region& backward);

}  // namespace tessera::partitioner
