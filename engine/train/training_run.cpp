#include "engine/train/training_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/system/clock.h"
#include "engine/system/stop_request.h"

namespace tessera::engine {

namespace {

bool has_tile(const partitioner::Plan& plan, const partitioner::Network& network, int rank) {
  for (int layer = 0; layer < network.size(); ++layer) {
    if (!plan.tile(layer, rank).computed.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

TrainingRun::TrainingRun(Trainer& trainer, DataLoader& training, const TrainingLength& length)
    : trainer_(&trainer),
      training_(&training),
      length_(length),
      pictures_(training.size()),
      first_step_(trainer.steps_done()),
      checkpoint_step_(trainer.steps_done()),
      has_work_(has_tile(trainer.execution().plan(),
                         trainer.execution().network(),
                         trainer.execution().communicator().rank())) {}

template <class... Parameters, class... Arguments>
void TrainingRun::notify(std::function<void(Parameters...)> TrainingObserver::*event,
                         const Arguments&... arguments) const {
  for (const TrainingObserver& observer : observers_) {
    if (const auto& function = observer.*event) {
      function(arguments...);
    }
  }
}

template <class Work>
void TrainingRun::run_in_order(const char* stop_notice, const Work& work) {
  const OrderlyStop orderly(stop_notice);
  try {
    work();
  } catch (const Diverged&) {
    throw;
  } catch (const AgreedError&) {
    if (trainer_->steps_done() > first_step_ && !trainer_->runs_ahead()) {
      const auto common = trainer_->common_model();
      notify(&TrainingObserver::failure, trainer_->steps_done());
    }
    throw;
  }
}

void TrainingRun::run(const char* stop_notice) {
  run_in_order(stop_notice, [this] {
    make_up();
    while (trainer_->steps_done() < length_.last_step && !enough_) {
      take_step();
    }
    notify(&TrainingObserver::end, trainer_->steps_done());
  });
}

void TrainingRun::run_until(Index step, const char* stop_notice) {
  const Index last = std::min(step, length_.last_step - 1);
  run_in_order(stop_notice, [this, last] {
    make_up();
    while (trainer_->steps_done() < last && !enough_) {
      take_step();
    }
  });
}

// A rank without work waits for the others' backward pass only where ranks next agree on something,
// which is after its step: its steps take from one to the next.
StepResult TrainingRun::timed_step() {
  StepResult result = trainer_->step(*training_);
  if (!has_work_) {
    StepTimes& times = result.times;
    const double end_s = now_s();
    const double rest_s = step_end_s_ ? std::max(0.0, end_s - *step_end_s_ - times.step_s) : 0;
    for (double* part :
         {&times.step_s, &times.update_s, &times.update_exchange_s, &times.waiting_s}) {
      *part += rest_s;
    }
    step_end_s_ = end_s;
  }
  return result;
}

void TrainingRun::take_step() {
  const StepResult result = timed_step();
  const Index step = trainer_->steps_done();
  notify(&TrainingObserver::step, step, result);
  if (saves_after(step)) {
    checkpoint();
  }
  if (result.stop_signal == kPauseSignal) {
    throw Stopped(kPauseSignal);  // the state is kept elsewhere
  }
  if (result.stop_signal != 0) {
    stop(result.stop_signal);
  }
  if (length_.ends_epoch(step)) {
    end_epoch();
  }
}

bool TrainingRun::saves_after(Index step) const {
  return step == length_.last_step ||
         (length_.checkpoint_steps > 0 ? step % length_.checkpoint_steps == 0
                                       : length_.ends_epoch(step) && (!is_due_ || is_due_()));
}

// What is owed of the trainer's step.
void TrainingRun::make_up() {
  const Index step = trainer_->steps_done();
  if (std::exchange(owes_checkpoint_, false) && saves_after(step)) {
    checkpoint();
  }
  if (std::exchange(owes_test_, false)) {
    end_epoch();
  } else if (enough_ && checkpoint_step_ != step) {
    checkpoint();
  }
}

void TrainingRun::checkpoint() {
  step_end_s_.reset();
  checkpoint_step_ = trainer_->steps_done();
  const auto common = trainer_->common_model();
  notify(&TrainingObserver::checkpoint, checkpoint_step_);
}

void TrainingRun::end_epoch() {
  step_end_s_.reset();
  const Index step = trainer_->steps_done();
  const double epoch = static_cast<double>(step * trainer_->options().training.batch) /
                       static_cast<double>(pictures_);
  if (testing_ != nullptr) {
    evaluate_now(step, epoch);
  }
  notify(&TrainingObserver::epoch, step, epoch);
  enough_ = testing_ != nullptr && observers_have_enough();
  if (enough_ && checkpoint_step_ != step) {
    checkpoint();
  }
}

void TrainingRun::evaluate_now(Index step, double epoch) {
  notify(&TrainingObserver::evaluation_begins, testing_->size());
  std::optional<EvaluationResult> result;
  int signal = 0;
  {
    const auto common = trainer_->common_model();
    trainer_->use_configured_size();
    try {
      trainer_->with_averages(
          [&] { result = evaluate(trainer_->execution(), *testing_, *metric_, testing_trunk_); });
    } catch (const Stopped& stopped) {
      signal = stopped.signal();
    }
    if (result) {
      notify(&TrainingObserver::evaluation, step, epoch, *result);
    }
  }
  if (!result) {
    stop(signal);
  }
}

bool TrainingRun::observers_have_enough() const {
  bool enough = false;
  for (const TrainingObserver& observer : observers_) {
    enough = (observer.enough && observer.enough()) || enough;
  }
  return enough;
}

void TrainingRun::stop(int signal) {
  if (checkpoint_step_ != trainer_->steps_done()) {
    checkpoint();
  }
  notify(&TrainingObserver::stopped, trainer_->steps_done());
  throw Stopped(signal);
}

}  // namespace tessera::engine
