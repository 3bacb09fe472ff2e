// run.json and memory.json of a run as values.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

struct RunJson {
  RunInfo info;
  RunState state = RunState::Running;  // as it was when the file was written
  std::string reason;
};

// Nothing where the text is not what the file should hold.
[[nodiscard]] std::optional<RunJson> run_json(std::string_view text);
[[nodiscard]] std::optional<std::vector<RankMemory>> memory_of_ranks(std::string_view text);

}  // namespace tessera::engine
