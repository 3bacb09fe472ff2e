// Devices that are of one kind, though no two of them measure the same: what was measured of all of
// them says more about each than what was measured of it alone.

#pragma once

#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

// The devices of each kind, in order. Two are of a kind if what both measured differs by less than
// an eighth, in the median of all numbers and convolutions.
[[nodiscard]] std::vector<std::vector<int>> alike_devices(
    const partitioner::ClusterProfile& cluster);

// Gives the devices of each kind the medians of what they measured: convolutions that any of them
// measured, rates, processor times of messages, and power. Their names and memory stay their own,
// and so do rates of their interfaces that are a fifth away from the median or more.
void describe_alike(const std::vector<std::vector<int>>& kinds,
                    partitioner::ClusterProfile& cluster);

}  // namespace tessera::engine
