// Whether a plan can be made in seconds and in the memory of a small machine. The numbers of a plan
// stay far from the ends of an Index where this holds.

#pragma once

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Throws InputError where tiles, messages of parameters, values or operations are too many, for so
// many ranks and images per pass.
void expect_plannable(const Network& network, Index ranks, Index batch);

// Whether it throws nothing.
[[nodiscard]] bool is_plannable(const Network& network, Index ranks, Index batch);

// The same for a search, which looks at many partitions of fewer layers; of so many ranks that
// nothing plans for them, it makes no whole plan.
void expect_searchable(const Network& network, Index ranks, Index batch);

}  // namespace tessera::partitioner
