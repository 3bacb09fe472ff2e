// What a group with `recompute = true` keeps between its forward and its backward pass, and what it
// computes again right before its backward pass. Both follow from the network and the group's
// layers, so that all ranks agree and a search can tell them of one group by itself.
//
// Kept: the maps that the group reads, and those of its own that the backward pass of a later group
// reads; statistics of batch normalisation; the argmax of max-pools whose output is not needed
// again. Computed again, without messages: all else that its backward pass wants. What later groups
// do not want in their backward pass is not kept for this group's sake either.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

// The layers that read a map.
[[nodiscard]] std::vector<int> readers_of(const Network& network, int map);

// The max-pool that may take the layer's output while this is being made, or kNoLayer: the only
// reader of a convolution, with windows that do not overlap.
[[nodiscard]] int fusable_pool(const Network& network, int layer);

// The last layer whose backward pass reads the map as an input; network.size() where the map is
// looked at after the forward pass: the output, and what losses are taken of. kNoLayer if none.
[[nodiscard]] int last_backward_reader(const Network& network, int map);

// What runs again of each layer of the group. `fused_pool` is by layer of the network, kNoLayer
// where there is none; a fused pool runs with its convolution.
[[nodiscard]] std::vector<RecomputedLayer> recomputed_layers(const Network& network,
                                                             const LayerRun& group,
                                                             const std::vector<int>& fused_pool);

// The same for those who count the work of single layers: pools are fused wherever they may be, but
// for maps whose gradients are reduced to owners, and run by themselves where their convolution
// assigns its output.
[[nodiscard]] std::vector<RecomputedLayer> recomputed_work(
    const Network& network, const LayerRun& group, const std::vector<OwnerReduction>& reductions);

// Whether any of it does, on some rank; where nothing does, recomputing the group changes nothing.
[[nodiscard]] bool runs_again(const Network& network, const LayerRun& group);

}  // namespace tessera::partitioner
