// What it takes to synchronise independent replicas: an exchange of parameters or gradients between
// ranks with the same part of each, and how it is spread over steps. See
// partitioner/partition/replicas.h.

#pragma once

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct SynchronisationCost {
  double exchange_s = 0;            // one exchange, by itself
  Index period_steps = 1;           // from one to the next
  bool hidden = false;              // replicas compute meanwhile, and wait where that takes less
  Index bytes = 0;                  // of one exchange, sent by all ranks
  Index busiest_bytes = 0;          // the most that a rank sends, or receives
  bool in_each_step_first = false;  // of a post-local run: in each step of its first part

  // What it adds to a mean step of replicas that take `replica_s` without it.
  [[nodiscard]] double added_s(double replica_s) const;
};

// Of a plan whose replicas are apart. An exchange of gossip is that of a mean pairing.
[[nodiscard]] SynchronisationCost synchronisation_cost(const Plan& plan,
                                                       const ClusterProfile& cluster);

}  // namespace tessera::partitioner
