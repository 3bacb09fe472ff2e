// Where the time of a step went on a mean rank, by what it was for and by layer, beside where it
// was predicted to go.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "partitioner/cost/compute_model.h"

namespace tessera::engine {

// Seconds of a mean step and rank. Waiting for a message counts for what it brings.
struct StepParts {
  double computing_s = 0;
  ExchangeTimes exchanges;
  double idle_s = 0;  // until the slowest rank is done

  [[nodiscard]] double step_s() const { return computing_s + exchanges.total_s() + idle_s; }
};

// The parts of steps that were measured on all ranks, which call this together; `longest_s` is what
// each step took the slowest of them.
[[nodiscard]] StepParts measured_parts(const std::vector<StepTimes>& times,
                                       const std::vector<double>& longest_s,
                                       const Communicator& communicator);

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

// One row per layer.
[[nodiscard]] std::string layers_table(
    const partitioner::Network& network,
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);
[[nodiscard]] nlohmann::ordered_json layers_json(
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);

}  // namespace tessera::engine
