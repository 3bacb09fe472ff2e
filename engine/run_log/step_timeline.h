// The actions of one step of a run on all ranks, for DIR/timeline.json: see trace.h.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/comm/run_clock.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class StepTimeline {
 public:
  // Records the third step from here, or the last one where there are fewer. `predicted_s` as in
  // TracedStep, rank 0's. All must outlive this.
  StepTimeline(Trainer& trainer,
               Index last_step,
               std::vector<std::vector<double>> predicted_s,
               const RunClock& clock,
               const Communicator& communicator);

  // What was done since the last step is no part of the next one: an evaluation.
  void forget();

  // After each step; all ranks call this together. The text of the file on rank 0, after the one
  // step. Nothing where the step has more actions than a page could show.
  [[nodiscard]] std::optional<std::string> after(Index step);

 private:
  [[nodiscard]] std::string text(const std::vector<PerformedAction>& mine) const;

  Trainer* trainer_;
  std::vector<std::vector<double>> predicted_s_;
  const RunClock* clock_;
  const Communicator* communicator_;
  Index step_;  // the one that is recorded
};

}  // namespace tessera::engine
