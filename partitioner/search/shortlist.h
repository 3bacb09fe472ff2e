// For a search among many devices: the choices that can be part of a partition worth finding, found
// by what a few of the ranks take. What these compute, send and receive is at most what all wait
// for, so a choice that is too expensive for them is too expensive.

#pragma once

#include "partitioner/search/group_choices.h"
#include "partitioner/search/partition_figures.h"

namespace tessera::partitioner {

// All choices of all partitions that are no slower than the fastest: every choice, where there are
// so few devices that partitions which are almost as fast count as well.
[[nodiscard]] ChoiceScope scope_of_fastest(const Network& network,
                                           const ClusterProfile& cluster,
                                           const SearchOptions& options,
                                           PartitionFigures& figures);

}  // namespace tessera::partitioner
