// Seconds since the start of a training run, on one clock for all ranks: they set it together,
// which agrees to some milliseconds. Where a run is resumed, they go on.

#pragma once

#include "engine/comm/communicator.h"
#include "engine/system/clock.h"

namespace tessera::engine {

class RunClock {
 public:
  // It says `begun_s` of rank 0 now. All ranks call this together.
  explicit RunClock(const Communicator& communicator, double begun_s = 0)
      : begun_s_(communicator.share(begun_s)) {
    communicator.barrier();
    start_s_ = now_s() - begun_s_;
  }

  [[nodiscard]] double t_s() const { return at(now_s()); }
  // When now_s() was `time_s`.
  [[nodiscard]] double at(double time_s) const { return time_s - start_s_; }
  // What it said at its making.
  [[nodiscard]] double begun_s() const { return begun_s_; }

 private:
  double begun_s_;
  double start_s_ = 0;
};

}  // namespace tessera::engine
