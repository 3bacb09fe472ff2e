// A plan for one of several sizes of the input, which take turns in one training run: parameters,
// and who owns what of them, are the same in all.

#pragma once

#include <string>

#include "partitioner/network/input_sizes.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct SizedPlan {
  Network network;
  Partition partition;
  Plan plan;  // of `network`
};

// By a partition of `network`, which is scaled. Throws InputError that begins with the size where a
// layer does not fit it, or where the partition cannot be scaled to it.
[[nodiscard]] SizedPlan sized_plan(const Network& network,
                                   const Partition& partition,
                                   Index batch,
                                   const InputSize& size);

// Whether ranks hold, own and exchange the same of parameters, and get the same targets, so that
// steps by these plans may follow each other without anything being moved.
[[nodiscard]] bool may_take_turns(const Plan& plan, const Plan& other);

}  // namespace tessera::partitioner
