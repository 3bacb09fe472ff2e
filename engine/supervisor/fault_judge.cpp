#include "engine/supervisor/fault_judge.h"

namespace tessera::engine {

namespace {

// Faults without a finished step between them, before a device that had them is left out, or, where
// none is left to leave out, the run is given up.
constexpr int kMostFaultsInARow = 3;

// How many of them a device may have before it is left out.
int most_faults(FaultKind kind) {
  switch (kind) {
    case FaultKind::Memory:
    case FaultKind::Lost:
      return 1;
    case FaultKind::Hangs:
    case FaultKind::Unheard:
      return 2;
    case FaultKind::Ended:
      break;
  }
  return kMostFaultsInARow;
}

}  // namespace

FaultJudge::Verdict FaultJudge::judge(FaultKind kind, bool here, double moved_s) {
  stand_still(moved_s);
  ++in_a_row_;
  if (here) {
    // Somebody has killed the agent; this machine itself is there.
    if (kind == FaultKind::Lost && in_a_row_ <= kMostFaultsInARow) {
      return Verdict::StartAgent;
    }
    return in_a_row_ < kMostFaultsInARow ? Verdict::SameDevices : Verdict::GiveUp;
  }
  if (in_a_row_ < most_faults(kind)) {
    return Verdict::SameDevices;
  }
  in_a_row_ = 0;  // those that are left begin anew
  return Verdict::LeaveOut;
}

std::optional<double> FaultJudge::finish_step(double now_s) {
  in_a_row_ = 0;
  if (!begun_s_) {
    return std::nullopt;
  }
  change_s_ = now_s - *begun_s_;
  begun_s_.reset();
  return change_s_;
}

}  // namespace tessera::engine
