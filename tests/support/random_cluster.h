// Random cluster profiles, for laws that must hold for all.

#pragma once

#include "tests/support/random_network.h"

#include "partitioner/cost/cluster_profile.h"

namespace tessera::tests {

// Devices of different speed, some links slower than the rest.
[[nodiscard]] partitioner::ClusterProfile random_cluster(Draw& draw, int devices);

}  // namespace tessera::tests
