#include "engine/train/training_run.h"

#include <utility>

#include "engine/system/stop_request.h"

namespace tessera::engine {

TrainingRun::TrainingRun(Trainer& trainer, DataLoader& training, const TrainingLength& length)
    : trainer_(&trainer),
      training_(&training),
      length_(length),
      pictures_(training.size()),
      checkpoint_step_(trainer.steps_done()) {}

template <class... Parameters, class... Arguments>
void TrainingRun::tell(std::function<void(Parameters...)> TrainingObserver::*event,
                       const Arguments&... arguments) const {
  for (const TrainingObserver& observer : observers_) {
    if (const auto& told = observer.*event) {
      told(arguments...);
    }
  }
}

void TrainingRun::run(const char* stop_notice) {
  const Index first_step = trainer_->steps_done();
  const OrderlyStop orderly(stop_notice);
  try {
    while (trainer_->steps_done() < length_.last_step && !enough_) {
      take_step();
    }
    tell(&TrainingObserver::end, trainer_->steps_done());
  } catch (const Diverged&) {
    throw;
  } catch (const AgreedError&) {
    if (trainer_->steps_done() > first_step) {
      tell(&TrainingObserver::failure, trainer_->steps_done());
    }
    throw;
  }
}

void TrainingRun::take_step() {
  const StepResult result = trainer_->step(*training_);
  const Index step = trainer_->steps_done();
  tell(&TrainingObserver::step, step, result);
  const bool last = step == length_.last_step;
  const Index period =
      length_.checkpoint_steps > 0 ? length_.checkpoint_steps : length_.epoch_steps;
  if (step % period == 0 || last) {
    checkpoint();
  }
  if (result.stop_signal != 0) {
    stop(result.stop_signal);
  }
  if (step % length_.epoch_steps == 0 || last) {
    end_epoch();
  }
}

void TrainingRun::checkpoint() {
  checkpoint_step_ = trainer_->steps_done();
  tell(&TrainingObserver::checkpoint, checkpoint_step_);
}

void TrainingRun::end_epoch() {
  const Index step = trainer_->steps_done();
  const double epoch = static_cast<double>(step * trainer_->options().training.batch) /
                       static_cast<double>(pictures_);
  if (testing_ != nullptr) {
    evaluate_now(step, epoch);
  }
  tell(&TrainingObserver::epoch, step, epoch);
  enough_ = testing_ != nullptr && is_enough();
  if (enough_ && checkpoint_step_ != step) {
    checkpoint();
  }
}

void TrainingRun::evaluate_now(Index step, double epoch) {
  EvaluationResult result;
  try {
    result = evaluate(trainer_->execution(), *testing_, *metric_);
  } catch (const Stopped& stopped) {
    stop(stopped.signal());
  }
  tell(&TrainingObserver::evaluation, step, epoch, result);
}

bool TrainingRun::is_enough() const {
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
  tell(&TrainingObserver::stopped, trainer_->steps_done());
  throw Stopped(signal);
}

}  // namespace tessera::engine
