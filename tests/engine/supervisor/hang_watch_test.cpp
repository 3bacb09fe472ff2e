#include "engine/supervisor/hang_watch.h"

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

constexpr double kSilence_s = 3;
constexpr double kLongestIdle_s = 120;

}  // namespace

TEST_CASE("ranks that show signs of work may take as long as they want where nothing is known") {
  HangWatch watch(kSilence_s);
  watch.begin();
  for (double now_s = 0; now_s < 2000; now_s += 100) {
    watch.take(3, of_rank::Works{}, now_s);
    CHECK(!watch.look({}, now_s + kLongestIdle_s));
  }
  const auto hang = watch.look({}, 1900 + kLongestIdle_s + 1);
  REQUIRE(hang);
  CHECK(hang->what == "nothing was done for 121 s");
  CHECK(!hang->rank);
}

TEST_CASE("of ranks that do nothing the one that is stuck hangs, until it works again") {
  HangWatch watch(kSilence_s);
  watch.begin();
  watch.take(0, of_rank::Phase{RankPhase::Setup, 0, 0}, 0);
  watch.take(2, of_rank::Stuck{}, 5);
  watch.take(1, of_rank::Stuck{}, 6);
  watch.take(1, of_rank::Works{}, 7);
  CHECK(!watch.look({}, kLongestIdle_s));
  auto hang = watch.look({}, 7 + kLongestIdle_s + 1);
  REQUIRE(hang);
  CHECK(hang->rank == 2);
  watch.begin();  // other ranks
  hang = watch.look({.moved_s = 200}, 200 + kLongestIdle_s + 1);
  REQUIRE(hang);
  CHECK(!hang->rank);
}

TEST_CASE("a step, a test and a checkpoint have each its own time, whoever shows signs of work") {
  HangWatch watch(kSilence_s);
  watch.begin();
  watch.take(0, of_rank::Phase{RankPhase::Steps, 0, 0}, 100);
  CHECK(watch.phase() == RankPhase::Steps);
  const HangWatch::Progress steps{.moved_s = 150, .step_s = 5};
  watch.take(0, of_rank::Works{}, 240);
  CHECK(!watch.look(steps, 250));  // 20 usual steps
  auto hang = watch.look(steps, 251);
  REQUIRE(hang);
  CHECK(hang->what == "no step was finished for 101 s");
  watch.take(0, of_rank::Phase{RankPhase::Test, 60, 0}, 160);
  CHECK(!watch.look(steps, 160 + 6000));
  CHECK(watch.look(steps, 160 + 6001));
  watch.take(0, of_rank::Phase{RankPhase::Saving, 0, 0}, 170);
  CHECK(!watch.look(steps, 170 + 120));
  CHECK(watch.look(steps, 170 + 121));
}

TEST_CASE("phases of other ranks than the first do not count") {
  HangWatch watch(kSilence_s);
  watch.begin();
  watch.take(1, of_rank::Phase{RankPhase::Steps, 0, 0}, 10);
  CHECK(watch.phase() == RankPhase::Setup);
}

TEST_CASE("ranks that are to pause have the time of a step from then on") {
  HangWatch watch(kSilence_s);
  watch.begin();
  watch.take(0, of_rank::Phase{RankPhase::Steps, 0, 0}, 100);
  HangWatch::Progress progress{.moved_s = 300, .step_s = 5, .pausing_since_s = 210};
  CHECK(!watch.look(progress, 310));
  const auto hang = watch.look(progress, 311);  // steps are finished all the same
  REQUIRE(hang);
  CHECK(hang->what == "ranks did not pause");
  progress.pausing_since_s.reset();
  CHECK(!watch.look(progress, 311));
}

}  // namespace tessera::engine
