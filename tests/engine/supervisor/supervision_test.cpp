#include "engine/supervisor/supervision.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::longest_phase_s;
using engine::RankPhase;

TEST_CASE("a test may take longer than twenty steps, by as many as it is long, but not for ever") {
  CHECK(longest_phase_s(RankPhase::Steps, {.step_s = 0.001}) == 30);
  CHECK(longest_phase_s(RankPhase::Steps, {.step_s = 5}) == 100);
  CHECK(longest_phase_s(RankPhase::Test, {.step_s = 5, .steps = 60}) == 6000);
  CHECK(longest_phase_s(RankPhase::Test, {.step_s = 0.001, .steps = 60}) == 30);
}

TEST_CASE("a slow SD card has the time to take a checkpoint, a disk that does not answer has not") {
  constexpr Index kWeights = Index{600} << 20;
  constexpr double kSlowCard = 1e6;  // bytes a second
  const auto longest_s = longest_phase_s(RankPhase::Saving, {.step_s = 0.01, .bytes = kWeights});
  REQUIRE(longest_s);
  CHECK(*longest_s > 2 * static_cast<double>(kWeights) / kSlowCard);
  CHECK(*longest_s < 3600);
  CHECK(longest_phase_s(RankPhase::Saving, {}) == 120);
  CHECK(longest_phase_s(RankPhase::Saving, {.bytes = -5}) == 120);
}

TEST_CASE("where nothing is known of how long a phase takes, idle ranks are all that counts") {
  CHECK(!longest_phase_s(RankPhase::Steps, {}));            // no step was timed
  CHECK(!longest_phase_s(RankPhase::Test, {.steps = 60}));  // the same
  CHECK(!longest_phase_s(RankPhase::Test, {.step_s = 5}));  // its length is not known
  CHECK(!longest_phase_s(RankPhase::Setup, {.step_s = 5}));
  CHECK(engine::longest_idle_s(engine::kUsualSilence_s) == 120);
  CHECK(engine::longest_idle_s(1) == 40);
}

}  // namespace
