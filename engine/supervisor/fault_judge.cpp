#include "engine/supervisor/fault_judge.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

namespace {

// How many faults of this kind a device may have, without a finished step between, before it is
// left out.
int most_faults(FaultKind kind) {
  switch (kind) {
    case FaultKind::Memory:
    case FaultKind::Lost:
      return 1;
    case FaultKind::Hangs:
    case FaultKind::Unheard:
      return 2;
    case FaultKind::Ended:
    case FaultKind::Crashed:
    case FaultKind::Limited:
      break;
  }
  return 3;
}

// Before the run is given up, as the device is the supervisor's own. What has ended a rank or the
// agent may pass; a rank that needs too much memory or hangs does so again.
int most_faults_here(FaultKind kind) {
  return kind == FaultKind::Ended || kind == FaultKind::Lost ? 10 : 3;
}

}  // namespace

FaultJudge::Verdict FaultJudge::judge(FaultKind kind, bool here, double moved_s) {
  stand_still(moved_s);
  ++in_a_row_;
  if (!has_stepped_ &&
      (kind == FaultKind::Limited || (kind == FaultKind::Crashed && ++crashes_ > 1))) {
    return Verdict::GiveUp;
  }
  if (here) {
    if (in_a_row_ >= most_faults_here(kind)) {
      return Verdict::GiveUp;
    }
    // Somebody has killed the agent; this machine itself is there.
    return kind == FaultKind::Lost ? Verdict::StartAgent : Verdict::SameDevices;
  }
  if (in_a_row_ < most_faults(kind)) {
    return Verdict::SameDevices;
  }
  in_a_row_ = 0;  // those that are left begin anew
  return Verdict::LeaveOut;
}

double FaultJudge::pause_s() const {
  constexpr int kWithoutPause = 2;
  constexpr double kFirst_s = 0.5;
  constexpr double kLongest_s = 16;
  if (in_a_row_ <= kWithoutPause) {
    return 0;
  }
  return std::min(std::ldexp(kFirst_s, in_a_row_ - kWithoutPause - 1), kLongest_s);
}

std::optional<double> FaultJudge::finish_step(double now_s) {
  has_stepped_ = true;
  in_a_row_ = 0;
  if (!begun_s_) {
    return std::nullopt;
  }
  change_s_ = now_s - *begun_s_;
  begun_s_.reset();
  return change_s_;
}

}  // namespace tessera::engine
