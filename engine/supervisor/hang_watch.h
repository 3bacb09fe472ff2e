// Whether the ranks of a world hang though they give signs of life: by what they tell of their
// work, and by how long a step, a test or a checkpoint should take. Times are seconds of one steady
// clock.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "partitioner/base/region.h"

namespace tessera::engine {

class HangWatch {
 public:
  explicit HangWatch(double silence_s) : silence_s_(silence_s) {}

  // Ranks start.
  void begin();
  // What a rank has told: a phase, rank 0's counts; that it works; that it is stuck.
  void take(int rank, const nlohmann::json& status, double now_s);
  [[nodiscard]] const std::string& phase() const { return phase_; }

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
  std::string phase_;  // of rank 0
  Index steps_ = 0;    // what it should take at most, 0: unknown
  Index bytes_ = 0;    // that it may have to write
  double since_s_ = 0;
  double worked_s_ = 0;  // when a rank has shown a sign of work
  std::set<int> stuck_;  // ranks that have shown none for long, and do not wait for others either
};

}  // namespace tessera::engine
