#include "engine/execution/scheduled_pass.h"

namespace tessera::engine {

using partitioner::Statistics;

namespace {

Statistics statistics_of(BatchNormMode mode) {
  switch (mode) {
    case BatchNormMode::Sync:
      return Statistics::Batch;
    case BatchNormMode::PerTile:
      return Statistics::Tile;
    case BatchNormMode::Frozen:
      break;
  }
  return Statistics::Running;
}

}  // namespace

partitioner::ScheduleOptions schedule_options(const Pass& pass, bool image_gradient, bool update) {
  return {.training = pass.training,
          .statistics = statistics_of(pass.batch_norm),
          .image_gradient = image_gradient,
          .update = update};
}

ScheduledPass make_scheduled_pass(const partitioner::Network& network,
                                  const partitioner::Plan& plan,
                                  const partitioner::ScheduleOptions& options) {
  ScheduledPass pass{options, make_schedule(network, plan, options), {}, {}, {}};
  pass.places = action_places(network, plan, pass.schedule);
  pass.of_trunk = actions_of_trunk(network, plan, pass.schedule);
  pass.completes = completed_trunk_maps(network, pass.schedule);
  return pass;
}

}  // namespace tessera::engine
