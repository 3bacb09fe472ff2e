#include "engine/serve/run_end.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::kShownAfterEnd_s;
using engine::kShownAfterKill_s;
using engine::RunData;
using engine::RunEnd;
using engine::RunState;

RunData in(RunState state, RunState said) {
  RunData run;
  run.state = state;
  run.info.emplace().state = name_of(said);
  return run;
}
RunData in(RunState state) {
  return in(state, state);
}

TEST_CASE("a run is shown for a while after it has ended") {
  for (const RunState how : {RunState::Finished, RunState::Interrupted, RunState::Failed}) {
    RunEnd end;
    CHECK(!end.is_over(in(RunState::Running), true, 0));
    CHECK(!end.is_over(in(RunState::Running), false, 1e6));
    CHECK(!end.is_over(in(how), true, 1e6 + 1));
    CHECK(!end.is_over(in(how), false, 1e6 + kShownAfterEnd_s));
    CHECK(end.is_over(in(how), false, 1e6 + 1 + kShownAfterEnd_s));
  }
}

TEST_CASE("a run that had ended before is shown for as long as it may be") {
  RunEnd end;
  CHECK(!end.is_over(in(RunState::Finished), true, 0));
  CHECK(!end.is_over(in(RunState::Finished), false, 1e6));
  CHECK(!end.is_over(in(RunState::Running), true, 1e6));  // it was resumed
  CHECK(!end.is_over(in(RunState::Finished), true, 2e6));
  CHECK(end.is_over(in(RunState::Finished), false, 2e6 + kShownAfterEnd_s));
}

TEST_CASE("a run whose processes were killed may go on") {
  RunEnd end;
  CHECK(!end.is_over(in(RunState::Running), true, 0));
  const RunData killed = in(RunState::Interrupted, RunState::Running);
  CHECK(was_killed(killed));
  CHECK(!end.is_over(killed, true, 1));
  CHECK(!end.is_over(killed, false, kShownAfterKill_s));
  CHECK(!end.is_over(in(RunState::Running), true, kShownAfterKill_s));
  CHECK(!end.is_over(killed, true, kShownAfterKill_s + 2));
  CHECK(!end.is_over(killed, false, 2 * kShownAfterKill_s));
  CHECK(end.is_over(killed, false, 2 * kShownAfterKill_s + 2));
}

TEST_CASE("a run that has not begun does not end") {
  RunEnd end;
  CHECK(!end.is_over(RunData(), false, 0));
  CHECK(!end.is_over(RunData(), true, 1));
  CHECK(!end.is_over(RunData(), false, 1e6));
}

}  // namespace
