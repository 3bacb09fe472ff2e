// Where the time of a step went on a mean rank and where it was predicted to go, as text and JSON.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/step_timing.h"

namespace tessera::engine {

// A row a part, with a column for each of the two.
[[nodiscard]] std::string parts_table(const StepParts& measured,
                                      const std::optional<StepParts>& predicted);
[[nodiscard]] nlohmann::ordered_json parts_json(const StepParts& parts);

// One row per layer.
[[nodiscard]] std::string layers_table(
    const partitioner::Network& network,
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);
[[nodiscard]] nlohmann::ordered_json layers_json(
    const std::vector<LayerComputing>& measured,
    const std::optional<std::vector<partitioner::PassSeconds>>& predicted);

}  // namespace tessera::engine
