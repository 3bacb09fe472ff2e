#include "engine/execution/scheduled_pass.h"

#include "tests/support/chain.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::Pass;
using partitioner::Network;
using partitioner::Plan;
using tests::chain;
using tests::convolution;
using tests::normalized;

}  // namespace

TEST_CASE("a pass is scheduled as the plan says, with a place for each action") {
  const Network network = chain({3, 8, 7}, {normalized(convolution(6, 3)), convolution(4, 3, 2)});
  const Plan plan = make_plan(network, single_tile(network), 4);
  const engine::ScheduledPass made =
      engine::make_scheduled_pass(network, plan, engine::schedule_options({}, false, true));
  CHECK(made.places.size() == made.schedule.actions.size());
  CHECK(made.schedule == make_schedule(network, plan, {}));
}

TEST_CASE("schedules differ by whose statistics a pass normalises with, and by training") {
  const auto of = [](BatchNormMode mode) {
    Pass pass;
    pass.batch_norm = mode;
    return engine::schedule_options(pass, false, true).statistics;
  };
  CHECK(of(BatchNormMode::Sync) == partitioner::Statistics::Batch);
  CHECK(of(BatchNormMode::PerTile) == partitioner::Statistics::Tile);
  CHECK(of(BatchNormMode::Frozen) == partitioner::Statistics::Running);
  CHECK(!engine::schedule_options({.training = false}, false, true).training);
}

TEST_CASE("a pass is the first of its step by its number, and the last where it ends the step") {
  CHECK(engine::pass_of_step({.number = 0, .ends_step = false}).first);
  CHECK(!engine::pass_of_step({.number = 0, .ends_step = false}).last);
  CHECK(!engine::pass_of_step({.number = 1, .ends_step = true}).first);
  CHECK(engine::pass_of_step({.number = 1, .ends_step = true}).last);
}
