#include "engine/supervisor/supervision.h"

#include <algorithm>

#include "engine/system/system_memory.h"

namespace tessera::engine {

std::optional<double> longest_phase_s(RankPhase phase, const PhaseLength& known) {
  constexpr double kLeast_s = 30;
  constexpr double kTimes = 20;
  if (phase == RankPhase::Steps && known.step_s > 0) {
    return std::max(kLeast_s, kTimes * known.step_s);
  }
  if (phase == RankPhase::Test && known.step_s > 0 && known.steps > 0) {
    return std::max(kLeast_s, kTimes * known.step_s * static_cast<double>(known.steps));
  }
  if (phase == RankPhase::Saving) {
    constexpr double kLeastSaving_s = 120;
    constexpr double kBytesPer_s = 2e6 / 8;
    return kLeastSaving_s + static_cast<double>(std::max<Index>(known.bytes, 0)) / kBytesPer_s;
  }
  return std::nullopt;
}

double longest_idle_s(double silence_s) {
  constexpr double kSilences = 40;
  return kSilences * silence_s;
}

Index kills_for_memory() {
  return number_after("/proc/vmstat", "oom_kill").value_or(0);
}

}  // namespace tessera::engine
