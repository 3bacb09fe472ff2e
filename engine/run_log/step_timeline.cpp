#include "engine/run_log/step_timeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/run_log/trace.h"

namespace tessera::engine {

namespace {

constexpr Index kSteady = 3;  // the first steps have to set up pages and connections
constexpr std::size_t kMostActions = 100'000;  // of all ranks

}  // namespace

StepTimeline::StepTimeline(Trainer& trainer,
                           Index last_step,
                           std::vector<std::vector<double>> predicted_s,
                           const RunClock& clock,
                           const Communicator& communicator)
    : trainer_(&trainer),
      predicted_s_(std::move(predicted_s)),
      clock_(&clock),
      communicator_(&communicator),
      step_(std::min(trainer.steps_done() + kSteady, last_step)) {
  trainer_->execution().record(step_ == trainer_->steps_done() + 1);
}

void StepTimeline::forget() {
  if (trainer_->steps_done() == step_ - 1) {
    trainer_->execution().record(true);
  }
}

std::optional<std::string> StepTimeline::after(Index step) {
  if (step == step_ - 1) {
    trainer_->execution().record(true);
  }
  if (step != step_) {
    return std::nullopt;
  }
  std::vector<PerformedAction> mine = trainer_->execution().performed();
  trainer_->execution().record(false);
  if (mine.size() * static_cast<std::size_t>(communicator_->size()) > kMostActions) {
    return std::nullopt;  // on all ranks: they perform the same actions
  }
  for (PerformedAction& action : mine) {
    action.begin_s = clock_->at(action.begin_s);
    action.end_s = clock_->at(action.end_s);
  }
  return text(mine);
}

// Seconds are from the first action of any rank.
std::string StepTimeline::text(const std::vector<PerformedAction>& mine) const {
  TracedStep traced;
  if (trainer_->has_configured_size()) {  // which is what predictions are of
    traced.predicted_s = predicted_s_;
  }
  double start_s = std::numeric_limits<double>::infinity();
  traced.per_rank = communicator_->of_ranks(mine);
  for (const std::vector<PerformedAction>& theirs : traced.per_rank) {
    start_s = theirs.empty() ? start_s : std::min(start_s, theirs.front().begin_s);
  }
  for (std::vector<PerformedAction>& actions : traced.per_rank) {
    for (PerformedAction& action : actions) {
      action.begin_s -= start_s;
      action.end_s -= start_s;
    }
  }
  if (communicator_->rank() != 0) {
    return "";
  }
  Pass pass;
  pass.batch_norm = trainer_->options().batch_norm;
  return trace_json(trainer_->execution().plan(), trainer_->execution().schedule(pass), traced);
}

}  // namespace tessera::engine
