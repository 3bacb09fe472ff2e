#include "engine/supervisor/fault_judge.h"

#include <vector>

#include <doctest/doctest.h>

namespace tessera::engine {

namespace {

using Verdict = FaultJudge::Verdict;
using Verdicts = std::vector<Verdict>;

// Of faults one after the other without a finished step between.
Verdicts verdicts_in_a_row(FaultKind kind, bool here, int count) {
  FaultJudge judge;
  Verdicts verdicts;
  for (int i = 0; i < count; ++i) {
    verdicts.push_back(judge.judge(kind, here, 100));
  }
  return verdicts;
}

}  // namespace

TEST_CASE("a device is left out at its first, second or third fault, depending on what happened") {
  CHECK(verdicts_in_a_row(FaultKind::Lost, false, 1) == Verdicts{Verdict::LeaveOut});
  CHECK(verdicts_in_a_row(FaultKind::Memory, false, 1) == Verdicts{Verdict::LeaveOut});
  for (const FaultKind kind : {FaultKind::Hangs, FaultKind::Unheard}) {
    CHECK(verdicts_in_a_row(kind, false, 2) == Verdicts{Verdict::SameDevices, Verdict::LeaveOut});
  }
  CHECK(verdicts_in_a_row(FaultKind::Ended, false, 3) ==
        Verdicts{Verdict::SameDevices, Verdict::SameDevices, Verdict::LeaveOut});
}

TEST_CASE("the supervisor's own device is never left out: the run is given up") {
  for (const FaultKind kind : {FaultKind::Memory, FaultKind::Hangs, FaultKind::Unheard}) {
    CHECK(verdicts_in_a_row(kind, true, 3) ==
          Verdicts{Verdict::SameDevices, Verdict::SameDevices, Verdict::GiveUp});
  }
  Verdicts ended(10, Verdict::SameDevices);
  ended.back() = Verdict::GiveUp;
  CHECK(verdicts_in_a_row(FaultKind::Ended, true, 10) == ended);
  Verdicts lost(10, Verdict::StartAgent);
  lost.back() = Verdict::GiveUp;
  CHECK(verdicts_in_a_row(FaultKind::Lost, true, 10) == lost);
}

TEST_CASE(
    "a crash before the first step that repeats, or has a known reason, is no device's fault") {
  for (const bool here : {true, false}) {
    CHECK(verdicts_in_a_row(FaultKind::Crashed, here, 2) ==
          Verdicts{Verdict::SameDevices, Verdict::GiveUp});
    CHECK(verdicts_in_a_row(FaultKind::Limited, here, 1) == Verdicts{Verdict::GiveUp});
    FaultJudge judge(true);
    CHECK(judge.judge(FaultKind::Limited, here, 100) == Verdict::SameDevices);
    CHECK(judge.judge(FaultKind::Crashed, here, 100) == Verdict::SameDevices);
  }
  FaultJudge judge;
  CHECK_FALSE(judge.has_stepped());
  (void)judge.finish_step(50);
  CHECK(judge.has_stepped());
  CHECK(judge.judge(FaultKind::Limited, true, 100) == Verdict::SameDevices);
}

TEST_CASE("ranks that are ended again and again start after longer and longer pauses") {
  FaultJudge judge;
  std::vector<double> pauses;
  for (int i = 0; i < 9; ++i) {
    (void)judge.judge(FaultKind::Ended, true, 100);
    pauses.push_back(judge.pause_s());
  }
  CHECK(pauses == std::vector<double>{0, 0, 0.5, 1, 2, 4, 8, 16, 16});
  (void)judge.finish_step(200);
  CHECK(judge.pause_s() == 0);
}

TEST_CASE("the devices that are left have all their faults before them") {
  FaultJudge judge;
  for (int lost = 0; lost < 5; ++lost) {
    CHECK(judge.judge(FaultKind::Lost, false, 100) == Verdict::LeaveOut);
    CHECK(judge.in_a_row() == 0);
  }
  CHECK(judge.judge(FaultKind::Hangs, false, 100) == Verdict::SameDevices);
  CHECK(judge.judge(FaultKind::Memory, true, 100) == Verdict::SameDevices);
  CHECK(judge.judge(FaultKind::Memory, true, 100) == Verdict::GiveUp);
}

TEST_CASE("a finished step is a new beginning") {
  FaultJudge judge;
  for (int i = 0; i < 10; ++i) {
    CHECK(judge.judge(FaultKind::Hangs, false, 100) == Verdict::SameDevices);
    CHECK(judge.in_a_row() == 1);
    (void)judge.finish_step(110);
    CHECK(judge.in_a_row() == 0);
  }
}

TEST_CASE("what a change takes is counted from the last step before the first fault") {
  FaultJudge judge;
  const double assumed_s = judge.change_s();
  CHECK(assumed_s > 0);
  CHECK(!judge.finish_step(50));
  CHECK(judge.change_s() == assumed_s);
  (void)judge.judge(FaultKind::Ended, false, 60);
  (void)judge.judge(FaultKind::Ended, false, 65);
  CHECK(judge.finish_step(72) == 12);
  CHECK(judge.change_s() == 12);
  CHECK(!judge.finish_step(73));
  CHECK(judge.change_s() == 12);
  judge.stand_still(80);  // a full disk is nobody's fault
  CHECK(judge.in_a_row() == 0);
  CHECK(judge.finish_step(84) == 4);
}

}  // namespace tessera::engine
