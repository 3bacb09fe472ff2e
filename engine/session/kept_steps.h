// The state after each step of a run, kept outside the ranks' processes (see engine/recovery) where
// that is asked for and can be.

#pragma once

#include <optional>
#include <string>
#include <utility>

#include "engine/recovery/kept_state.h"
#include "engine/session/session_observer.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/training_phase.h"
#include "engine/train/training_run.h"

namespace tessera::engine {

class KeptSteps {
 public:
  // Into that folder; empty: nothing is kept, and nothing here does anything. `observer` must
  // outlive it.
  KeptSteps(std::string folder, const SessionObserver& observer)
      : folder_(std::move(folder)), observer_(observer) {}

  // Of steps by the partition of that phase, where the run had begun as `begun` says. All must
  // outlive the run. All ranks that take part call this together.
  [[nodiscard]] TrainingObserver observer(const partitioner::Network& network,
                                          TrainingPhase& phase,
                                          const TrainingState& begun,
                                          const TrainingLength& length);
  // Where no step follows at once, on all ranks that take part.
  void settle();
  // Before steps are taken by another partition.
  void change_partition() { state_.reset(); }
  // Training has ended well.
  void discard();

  [[nodiscard]] Index memory_bytes() const { return state_ ? state_->memory_bytes() : 0; }

 private:
  void say_what_is_kept(const Communicator& trains) const;

  std::string folder_;
  const SessionObserver& observer_;
  std::optional<KeptState> state_;  // by the plan at hand
};

}  // namespace tessera::engine
