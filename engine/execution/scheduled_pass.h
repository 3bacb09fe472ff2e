// A schedule as an execution performs it: its actions, and the place of each.

#pragma once

#include <vector>

#include "engine/execution/action_places.h"
#include "engine/layers/layer.h"
#include "partitioner/plan/trunk_homes.h"

namespace tessera::engine {

struct ScheduledPass {
  partitioner::ScheduleOptions options;
  partitioner::Schedule schedule;
  ActionPlaces places;
  // See partitioner/plan/trunk_homes.h.
  IndexedVector<partitioner::ActionIndex, bool> of_trunk;
  IndexedVector<partitioner::ActionIndex, int> completes;
};

// What the schedule of a pass has to be made with. `update`: parameters are changed after it.
[[nodiscard]] partitioner::ScheduleOptions schedule_options(const Pass& pass,
                                                            bool image_gradient,
                                                            bool update);

[[nodiscard]] ScheduledPass make_scheduled_pass(const partitioner::Network& network,
                                                const partitioner::Plan& plan,
                                                const partitioner::ScheduleOptions& options);

// Which pass of its step it is, by which the schedule chooses actions.
[[nodiscard]] inline partitioner::PassOfStep pass_of_step(const Pass& pass) {
  return {.first = pass.number == 0, .last = pass.ends_step};
}

}  // namespace tessera::engine
