// Partitions that simple rules make, which what a search finds is compared with.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "partitioner/search/search.h"

namespace tessera::partitioner {

// By name, where there is such a partition: the best without fused groups, the best single group, a
// grid of tiles, shares of images. Kernels, reader and gradient reduction are those of `like`.
[[nodiscard]] std::vector<std::pair<std::string, Partition>> simple_baselines(
    const Network& network,
    const ClusterProfile& cluster,
    const SearchOptions& options,
    const Partition& like);

}  // namespace tessera::partitioner
