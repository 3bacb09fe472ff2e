#include "engine/run_view/run_data.h"

#include <algorithm>

namespace tessera::engine {

const char* name_of(RunState state) {
  switch (state) {
    case RunState::Empty:
      return "empty";
    case RunState::Running:
      return "running";
    case RunState::Finished:
      return "finished";
    case RunState::Interrupted:
      return "interrupted";
    case RunState::Failed:
      return "failed";
  }
  return "";
}

RunState state_named(const std::string& name) {
  for (const RunState state : {RunState::Running, RunState::Finished, RunState::Failed}) {
    if (name == name_of(state)) {
      return state;
    }
  }
  return RunState::Interrupted;
}

int RunData::ranks() const {
  // What was started last says it: other files may tell of more ranks, of before a resume on fewer.
  if (info && !info->ranks.empty()) {
    return static_cast<int>(info->ranks.size());
  }
  std::size_t most = memory.size();
  if (plan) {
    most = std::max(most, static_cast<std::size_t>(plan->ranks));
  }
  if (!devices.empty()) {
    most = std::max(most, static_cast<std::size_t>(devices.rbegin()->first) + 1);
  }
  return static_cast<int>(most);
}

}  // namespace tessera::engine
