// Where the actions of a schedule stand: in the time by which memory is laid out, see
// partitioner/memory/activation_arena.h, and among what each layer takes to compute.

#pragma once

#include <vector>

#include "partitioner/cost/compute_model.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

struct ActionPlace {
  int time = 0;    // never falls within a section; in an update, and where only parameters or
                   // losses are concerned, that of the action before
  int layer = -1;  // whose computing it is; -1: nobody's
  double partitioner::PassSeconds::*pass = nullptr;
};

using ActionPlaces = IndexedVector<partitioner::ActionIndex, ActionPlace>;

[[nodiscard]] ActionPlaces action_places(const partitioner::Network& network,
                                         const partitioner::Plan& plan,
                                         const partitioner::Schedule& schedule);

}  // namespace tessera::engine
