// Whether the ranks of a world hang though they give signs of life: by what they tell of their
// work, and by how long a step, a test or a checkpoint should take. Times are seconds of one steady
// clock.

#pragma once

#include <optional>
#include <set>
#include <string>

#include "engine/supervisor/protocol.h"

namespace tessera::engine {

class HangWatch {
 public:
  explicit HangWatch(double silence_s) : silence_s_(silence_s) {}

  // Ranks start.
  void begin();
  // A phase, of which rank 0's counts; that a rank works, or is stuck; others say nothing here.
  void take(int rank, const of_rank::Message& message, double now_s);
  [[nodiscard]] RankPhase phase() const { return phase_.phase; }

  struct Progress {
    double moved_s = 0;  // when ranks were started or have finished a step last
    double step_s = 0;   // of a usual one; 0: unknown
    std::optional<double> pausing_since_s = {};  // ranks were asked to pause
  };
  struct Hang {
    std::string what;
    std::optional<int> rank = {};  // that hangs, where it is known
  };
  // Nothing where ranks go on, or may be about to.
  [[nodiscard]] std::optional<Hang> look(const Progress& progress, double now_s) const;

 private:
  double silence_s_;
  of_rank::Phase phase_;  // of rank 0
  double since_s_ = 0;
  double worked_s_ = 0;  // when a rank has shown a sign of work
  std::set<int> stuck_;  // ranks that have shown none for long, and do not wait for others either
};

}  // namespace tessera::engine
