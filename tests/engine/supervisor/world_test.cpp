#include "engine/supervisor/world.h"

#include <csignal>

#include <doctest/doctest.h>

namespace tessera::engine {

TEST_CASE("the first rank that has said nothing is known until all have") {
  World world(1, {0, 0, 1, 2}, 100);
  CHECK(world.first_silent() == 0);
  world.hear(0);
  world.hear(2);
  CHECK(world.first_silent() == 1);
  world.hear(1);
  CHECK(world.first_silent() == 3);
  world.hear(3);
  CHECK(!world.first_silent());
}

TEST_CASE("a usual step is the median of the latest, but for the first of a start") {
  World world(1, {0, 1}, 100);
  CHECK(world.step_s() == 0);
  world.finish_step(41, 50, 190);
  CHECK(world.step_s() == 0);
  CHECK(world.step() == 41);
  CHECK(world.last_step() == 50);
  world.finish_step(42, 50, 192);
  world.finish_step(43, 50, 193);
  world.finish_step(44, 50, 220);
  CHECK(world.step_s() == 2);
  CHECK(world.steps_done() == 4);
  CHECK(world.moved_s() == 220);
}

TEST_CASE("the first end that is not a good one is that of a world") {
  World world(1, {0, 1, 2}, 100);
  world.finish_rank(2, {.code = 0});
  CHECK(!world.first_failure());
  world.finish_rank(0, {.code = 2});
  world.finish_rank(1, {.signal = 9});
  CHECK(world.all_ended());
  REQUIRE(world.first_failure());
  CHECK(world.first_failure()->code == 2);
}

TEST_CASE("a device has ended once all of its ranks have") {
  World world(1, {0, 0, 1}, 100);
  world.finish_rank(0, {.code = 143});
  CHECK(!world.has_ended_on(0));
  world.finish_rank(1, {.code = 143});
  CHECK(world.has_ended_on(0));
  CHECK(!world.has_ended_on(1));
}

TEST_CASE("a rank that was told to stop has not ended on purpose unless it has saved") {
  for (const int code : {129, 130, 143}) {
    CHECK(is_stopped({.code = code}));
    CHECK(!is_deliberate({.code = code}));
  }
  CHECK(!is_stopped({.code = 2}));
  CHECK(!is_stopped({.signal = 15}));
  World world(1, {0, 1}, 100);
  CHECK(!world.has_saved(1));
  world.save(1);
  CHECK(world.has_saved(1));
  CHECK(!world.has_saved(0));
}

TEST_CASE("a crash is an end by itself that nobody has asked for") {
  for (const ProcessEnd& crash : {ProcessEnd{15, 0}, {127, 0}, {0, SIGSEGV}, {0, SIGBUS}}) {
    CHECK(is_crash(crash));
  }
  for (const ProcessEnd& other : {ProcessEnd{0, 0}, {2, 0}, {75, 0}, {143, 0}, {0, SIGKILL}}) {
    CHECK_FALSE(is_crash(other));
  }
}

}  // namespace tessera::engine
