#include "engine/execution/action_places.h"

#include <algorithm>
#include <vector>

#include "tests/support/scheduled_plans.h"
#include <doctest/doctest.h>

#include "partitioner/memory/activation_arena.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::action_places;
using engine::ActionPlace;
using engine::ActionPlaces;
using partitioner::Action;
using partitioner::Phase;
using partitioner::Schedule;

// Whether an action of that phase stands at the time.
bool happens(
    const Schedule& schedule, const ActionPlaces& places, Phase phase, int layer, int time) {
  for (const partitioner::ActionIndex i : places.indices()) {
    const Action& action = schedule.actions[i];
    if (action.kind == Action::Kind::Compute && action.phase == phase && action.layer == layer &&
        places[i].time == time) {
      return true;
    }
  }
  return false;
}

void check_brought_back(const partitioner::Network& network,
                        const partitioner::Plan& plan,
                        int rank,
                        bool keep_maps) {
  const auto own = static_cast<std::size_t>(rank);
  const ActionPlaces places = action_places(network, plan, plan.schedule);
  const partitioner::ActivationArena arena =
      activation_arena(network, plan, rank, {.keep_maps = keep_maps});
  for (const partitioner::BufferIndex i : arena.restored.indices()) {
    if (arena.restored[i].bytes > 0) {
      CHECK(happens(
          plan.schedule, places, Phase::Restore, plan.buffers[own][i].map, arena.restored[i].from));
    }
  }
  const auto groups = groups_of(plan);
  for (int layer = 0; layer < network.size(); ++layer) {
    if (arena.again[static_cast<std::size_t>(layer)].runs) {
      const int last = groups[static_cast<std::size_t>(plan.group(layer))].last;
      CHECK(happens(
          plan.schedule, places, Phase::Recompute, layer, recompute_time(network, last, layer)));
    }
  }
}

}  // namespace

TEST_CASE("memory changes hands in the order of a schedule") {
  tests::for_each_scheduled_plan(
      300, [](const tests::RandomCase& random, const partitioner::Plan& plan) {
        for (const partitioner::ScheduleOptions& options : tests::all_schedule_options()) {
          const Schedule schedule = make_schedule(random.network, plan, options);
          const ActionPlaces places = action_places(random.network, plan, schedule);
          CHECK(places.size() == schedule.actions.size());
          for (const partitioner::ScheduleSection& section : partitioner::kScheduleSections) {
            const partitioner::Section actions = schedule.*section.actions;
            CHECK(std::is_sorted(
                places.begin() + actions.begin.number(),
                places.begin() + actions.end.number(),
                [](const ActionPlace& a, const ActionPlace& b) { return a.time < b.time; }));
          }
        }
      });
}

TEST_CASE("what memory keeps in another form is brought back by an action") {
  tests::for_each_scheduled_plan(
      300, [](const tests::RandomCase& random, const partitioner::Plan& plan) {
        for (int rank = 0; rank < plan.ranks; ++rank) {
          check_brought_back(random.network, plan, rank, false);
          check_brought_back(random.network, plan, rank, true);
        }
      });
}
