#include "engine/supervisor/hang_watch.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/supervisor/supervision.h"

namespace tessera::engine {

void HangWatch::begin() {
  phase_ = {};
  stuck_.clear();
}

void HangWatch::take(int rank, const of_rank::Message& message, double now_s) {
  if (const auto* const phase = std::get_if<of_rank::Phase>(&message);
      phase != nullptr && rank == 0) {
    phase_ = *phase;
    since_s_ = now_s;
  } else if (std::holds_alternative<of_rank::Works>(message)) {
    worked_s_ = now_s;
    stuck_.erase(rank);
  } else if (std::holds_alternative<of_rank::Stuck>(message)) {
    stuck_.insert(rank);
  }
}

std::optional<HangWatch::Hang> HangWatch::look(const Progress& progress, double now_s) const {
  const auto late_s = longest_phase_s(
      phase_.phase, {.step_s = progress.step_s, .steps = phase_.steps, .bytes = phase_.bytes});
  const double moved_s = std::max(progress.moved_s, since_s_);
  if (!late_s) {
    const double idle_s = now_s - std::max(moved_s, worked_s_);
    return idle_s > longest_idle_s(silence_s_)
               ? std::optional(Hang{fmt::format("nothing was done for {:.0f} s", idle_s),
                                    stuck_.empty() ? std::nullopt : std::optional(*stuck_.begin())})
               : std::nullopt;
  }
  if (progress.pausing_since_s && now_s - std::max(*progress.pausing_since_s, since_s_) > *late_s) {
    return Hang{"ranks did not pause"};
  }
  return now_s - moved_s > *late_s ? std::optional(Hang{fmt::format(
                                         "no step was finished for {:.0f} s", now_s - moved_s)})
                                   : std::nullopt;
}

}  // namespace tessera::engine
