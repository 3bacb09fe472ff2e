// What the actions of a plan's schedule take on a cluster: seconds of each computation on each
// rank, and the bytes of each message. The order is the plan's; see partitioner/plan/schedule.h.
//
// Second copies of the state of the step before, where it is kept, travel during the forward pass
// of the last pass, and are there before the loss: a transfer that is not in the plan.
//
// A step counts from one update to the next: it begins with the update of the step before, whose
// values travel during this step's forward pass, and ends when all gradients are there. Memory that
// changes hands, maps that are restored and what is said beside a loss are not priced.

#pragma once

#include <cstddef>
#include <vector>

#include "partitioner/cost/cost_model.h"

namespace tessera::partitioner {

struct PricedTransfer {
  std::vector<Parcel> parcels;  // in the order in which a rank sends its own
  bool in_order = false;        // all must be there before the first is taken in: what is added
  bool bulk = false;            // lets others go first: gradients and values of parameters
  bool waits_for_sends = true;  // else a rank goes on when it has what it receives: maps
};

struct PricedAction {
  Action action;
  ActionIndex number = {};      // in the schedule; of second copies: that of the action after it
  Index pass = 0;               // with its transfer, what tells one exchange of a step from another
  std::vector<double> seconds;  // [rank], of Compute; of Finish: what follows where it updates what
                                // has arrived, else empty
};

using PricedActionIndex = StrongIndex<struct PricedActionTag>;  // in PricedStep::actions

struct PricedStep {
  int ranks = 1;
  // As Plan::transfers, and second copies.
  IndexedVector<TransferIndex, PricedTransfer> transfers;
  IndexedVector<PricedActionIndex, PricedAction> actions;  // of a whole step, in its order
};

[[nodiscard]] PricedStep priced_step(const Network& network,
                                     const Plan& plan,
                                     const ClusterProfile& cluster,
                                     const CostOptions& options);

}  // namespace tessera::partitioner
