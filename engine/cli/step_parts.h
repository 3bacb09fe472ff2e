// Where the time of a step went on a mean rank, by what it was for and by layer, beside where it
// was predicted to go.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cli/planning.h"
#include "engine/run_log/run_log.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

// Seconds of a mean step and rank. Waiting for a message counts for what it brings.
struct StepParts {
  double computing_s = 0;
  ExchangeTimes exchanges;
  double idle_s = 0;  // until the slowest rank is done

  [[nodiscard]] double step_s() const { return computing_s + exchanges.total_s() + idle_s; }
};

// Of steps that were measured on all ranks, which call this together; `longest_s` is what each step
// took the slowest of them.
[[nodiscard]] StepParts measured_parts(const std::vector<StepTimes>& times,
                                       const std::vector<double>& longest_s,
                                       const Communicator& communicator);

// Of a step without a loss, by the profile that the choice leads to; nothing where there is none.
// Throws InputError where it does not describe all ranks.
[[nodiscard]] std::optional<StepParts> predicted_parts(const PartitionChoice& choice,
                                                       const partitioner::Network& network,
                                                       const Workload& workload,
                                                       const partitioner::Partition& partition);

// A row a part, with a column for each of the two.
[[nodiscard]] std::string parts_table(const StepParts& measured,
                                      const std::optional<StepParts>& predicted);
[[nodiscard]] nlohmann::ordered_json parts_json(const StepParts& parts);

// What a mean rank computed in a step, by layer, and what the slowest one did.
struct LayerComputing {
  partitioner::PassSeconds mean;
  partitioner::PassSeconds most;  // of any rank, each pass by itself
};

// `mine` are seconds of `steps` steps on this rank, by layer. All ranks call this together.
[[nodiscard]] std::vector<LayerComputing> measured_layers(
    const std::vector<partitioner::PassSeconds>& mine,
    Index steps,
    const Communicator& communicator);

// Of a mean rank, by the profile that the choice leads to; nothing where there is none.
[[nodiscard]] std::optional<std::vector<partitioner::PassSeconds>> predicted_layers(
    const PartitionChoice& choice,
    const partitioner::Network& network,
    const Workload& workload,
    const partitioner::Partition& partition);

// What each action of the plan's schedule takes each rank by that profile, [rank][action]: starts
// and finishes with what a rank waits in them. Negative where nothing is predicted: of the loss,
// which is no part of the step, and of transfers in steps that are too large to simulate. Empty
// where there is no profile.
[[nodiscard]] std::vector<std::vector<double>> predicted_actions(
    const PartitionChoice& choice,
    const partitioner::Network& network,
    const Workload& workload,
    const partitioner::Partition& partition,
    const partitioner::Plan& plan);

// All that is predicted for the steps of a run; nothing where there is no profile of all ranks.
[[nodiscard]] PredictedSteps predicted_steps(const PartitionChoice& choice,
                                             const partitioner::Network& network,
                                             const Workload& workload,
                                             const partitioner::Partition& partition,
                                             const partitioner::Plan& plan);

// One row per layer.
[[nodiscard]] std::string layers_table(
    const partitioner::Network& network,
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);
[[nodiscard]] nlohmann::ordered_json layers_json(
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);

}  // namespace tessera::engine
