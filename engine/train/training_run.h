// A training run: steps up to the last one, with checkpoints and evaluations at their times, and an
// orderly end where a signal asks for one. What is made of the results is the observers' matter.
//
// All ranks run it together, with observers that act together: what one rank alone does, and what
// may go wrong with that, an observer shares (comm/agreement.h).

#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

struct TrainingLength {
  Index epoch_steps = 1;  // steps after which all pictures have been seen once, rounded up
  Index last_step = 0;
  Index checkpoint_steps = 0;  // steps between checkpoints; 0: once per epoch, see save_epochs_if()
  // Where both are given, epochs end where their pictures do, which may be inside a step; else
  // after every epoch_steps.
  Index pictures = 0;
  Index images = 0;  // of a step

  // Whether an epoch ends in that step, or training does.
  [[nodiscard]] bool ends_epoch(Index step) const {
    if (step == last_step || pictures <= 0 || images <= 0) {
      return step == last_step || step % epoch_steps == 0;
    }
    return step * images / pictures > (step - 1) * images / pictures;
  }
};

// Each function may be empty. Steps count from 1; an exception ends the run.
struct TrainingObserver {
  // After each step.
  std::function<void(Index step, const StepResult&)> step = {};
  // At multiples of checkpoint_steps, after the last step, and before an end that a signal asked
  // for.
  std::function<void(Index step)> checkpoint = {};
  // Before each evaluation, on so many pictures.
  std::function<void(Index pictures)> evaluation_begins = {};
  // After each epoch and the last step. `epoch`: how often all pictures have been seen.
  std::function<void(Index step, double epoch, const EvaluationResult&)> evaluation = {};
  // At the same times, also of runs without evaluations; after those of runs with some.
  std::function<void(Index step, double epoch)> epoch = {};
  // After each evaluation, when all observers know its result: whether that was enough training.
  // The answer is the same on all ranks; where an observer says so the run ends as after its last
  // step.
  std::function<bool()> enough = {};
  // After the last step, once everything else is done.
  std::function<void(Index step)> end = {};
  // A signal asked for an end; everything else is done, a checkpoint too.
  std::function<void(Index step)> stopped = {};
  // An AgreedError other than Diverged ends a run that has done steps: a picture cannot be read, or
  // an observer failed. Not where replicas may run ahead: some have gone on by then, so the
  // last checkpoint is what is left. The error is thrown on afterwards, unless this throws another
  // one.
  std::function<void(Index step)> failure = {};
};

class TrainingRun {
 public:
  // All must outlive the run.
  TrainingRun(Trainer& trainer, DataLoader& training, const TrainingLength& length);

  // Evaluates on these pictures, see evaluate(). All must outlive the run.
  void test_on(DataLoader& testing, Metric& metric, TrunkCache* trunk = nullptr) {
    testing_ = &testing;
    metric_ = &metric;
    testing_trunk_ = trunk;
  }

  // The epoch that ended in the trainer's step is still to be ended, with its test, before the next
  // step.
  void owe_test() { owes_test_ = true; }

  // Where checkpoints are once per epoch: whether one is made at the end of this epoch, which is
  // not the last. All ranks ask together and get the same answer.
  void save_epochs_if(std::function<bool()> due) { is_due_ = std::move(due); }

  // The last checkpoint was after that step, or there is none of this training: 0. Unless this is
  // called, it was after the trainer's step.
  void last_saved(Index step) { checkpoint_step_ = step; }

  // Where a checkpoint is due after the trainer's step, it is made before anything else.
  void owe_checkpoint() { owes_checkpoint_ = true; }

  // Observers have had enough: nothing is left to do but what comes at the end.
  void has_enough() { enough_ = true; }

  // Another run, of the same training, began at that step and ended where this one begins.
  void goes_on_from(Index first_step) { first_step_ = first_step; }

  // Observers are told in the order in which they were added.
  void add(TrainingObserver observer) { observers_.push_back(std::move(observer)); }

  // From the trainer's step to the last one. Throws what Trainer::step() and evaluate() throw, and
  // Stopped on all ranks, after a checkpoint, where a signal asked one of them to end.
  // `stop_notice` is written to standard error when it comes; null: nothing.
  void run(const char* stop_notice = nullptr);

  // The same up to a step at most, without what comes at the end: another run, of a trainer that
  // goes on from there, may be the next part of it. The last step of all is for run().
  void run_until(Index step, const char* stop_notice = nullptr);

  // Whether an observer said so: run() then has nothing left to do but what comes at the end.
  [[nodiscard]] bool is_enough() const { return enough_; }

 private:
  template <class Work>
  void run_in_order(const char* stop_notice, const Work& work);
  [[nodiscard]] StepResult timed_step();
  void take_step();
  [[nodiscard]] bool saves_after(Index step) const;
  void checkpoint();
  void end_epoch();
  void make_up();
  void evaluate_now(Index step, double epoch);
  [[nodiscard]] bool observers_have_enough() const;
  [[noreturn]] void stop(int signal);
  template <class... Parameters, class... Arguments>
  void notify(std::function<void(Parameters...)> TrainingObserver::*event,
              const Arguments&... arguments) const;

  Trainer* trainer_;
  DataLoader* training_;
  DataLoader* testing_ = nullptr;
  Metric* metric_ = nullptr;  // that judges testing_
  TrunkCache* testing_trunk_ = nullptr;
  std::function<bool()> is_due_;  // empty: always
  TrainingLength length_;
  Index pictures_;
  std::vector<TrainingObserver> observers_;
  Index first_step_;       // done before the run
  Index checkpoint_step_;  // of the last one
  bool owes_test_ = false;
  bool owes_checkpoint_ = false;
  bool enough_ = false;
  bool has_work_;                     // this rank computes something
  std::optional<double> step_end_s_;  // of the last step, where nothing else was done since
};

}  // namespace tessera::engine
