// A training step as Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing
// show: Every rank is a process. Its actions follow each other, one event each; what is on its way
// between a start and a finish is an event of its own beside them.

#pragma once

#include <string>
#include <vector>

#include "engine/execution/action_clock.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

struct TracedStep {
  std::vector<std::vector<PerformedAction>> per_rank;  // seconds from the start of the step
  // What each action takes by prediction: [rank][action], negative where nothing is predicted;
  // empty where there is no profile.
  std::vector<std::vector<double>> predicted_s;
};

// JSON. `schedule` is what the ranks have performed of the plan.
[[nodiscard]] std::string trace_json(const partitioner::Plan& plan,
                                     const partitioner::Schedule& schedule,
                                     const TracedStep& step);

}  // namespace tessera::engine
