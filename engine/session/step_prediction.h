// What a profile of the cluster predicts for the steps of a plan, action by action and rank by
// rank.

#pragma once

#include <vector>

#include "engine/run_log/run_log.h"
#include "engine/session/planning.h"

namespace tessera::engine {

// What each action of the plan's schedule takes each rank by that profile, [rank][action]: starts
// and finishes with what a rank waits in them. Negative where nothing is predicted: of the loss,
// which is no part of the step, and of transfers in steps that are too large to simulate. Empty
// where there is no profile.
[[nodiscard]] std::vector<std::vector<double>> predicted_actions(
    const PartitionRequest& request,
    const partitioner::Network& network,
    const Workload& workload,
    const partitioner::Partition& partition,
    const partitioner::Plan& plan);

// All that is predicted for the steps of a run; nothing where there is no profile of all ranks.
[[nodiscard]] PredictedSteps predicted_steps(const PartitionRequest& request,
                                             const partitioner::Network& network,
                                             const Workload& workload,
                                             const partitioner::Partition& partition,
                                             const partitioner::Plan& plan);

}  // namespace tessera::engine
