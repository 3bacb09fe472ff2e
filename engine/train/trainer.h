// Training steps on one rank of several; all ranks call everything here together. One device is the
// same with one rank.

#pragma once

#include "engine/comm/agreement.h"
#include "engine/train/data_loader.h"
#include "engine/train/optimizer.h"

namespace tessera::engine {

// Seconds, on this rank; `exchanges` are part of the others.
struct StepTimes {
  double load_s = 0;
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;
  double forward_exchange_s = 0;  // of forward_s, and so on
  double backward_exchange_s = 0;
  double update_exchange_s = 0;
  double waiting_s = 0;  // of these three: for messages
  ExchangeTimes exchanges;
  double step_s = 0;  // from the start of the step to its end
};

struct StepResult {
  double loss = 0;  // mean over the images of the step, of the network before the update
  double learning_rate = 0;
  StepTimes times;
  int stop_signal = 0;  // that some rank had by then, the same on all ranks; 0: none
};

// The loss is not a number: what was trained is not worth keeping.
class Diverged : public AgreedError {
 public:
  using AgreedError::AgreedError;
};

struct TrainerOptions {
  partitioner::TrainingOptions
      training;  // training.batch images per step, in training.subdivisions passes
  BatchNormMode batch_norm = BatchNormMode::Sync;
  std::uint64_t seed = 0;
};

class Trainer {
 public:
  // `plan` is of batch / subdivisions images; all arguments must outlive the trainer.
  Trainer(const partitioner::Network& network,
          const partitioner::Plan& plan,
          const Communicator& communicator,
          const TrainerOptions& options);
  // Waits for the values that are on their way: all ranks end it together, unless an error does.
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Update number steps_done() + 1. Throws AgreedError if any rank cannot read a picture, Diverged
  // where the loss is not a number; all parameters are then as they were before the step. Values
  // that other ranks have updated may still be on their way afterwards: execution().parameters()
  // waits for them, as the next forward pass does, layer by layer.
  //
  // A network without a loss can be timed on random pictures but not trained: all cells of its
  // output get the same small gradient, its loss is 0, and the ranks agree on nothing.
  StepResult step(DataLoader& loader);

  // Throws Diverged where a weight or a statistic of any rank is not finite, which the next step's
  // loss would show: such ones are not worth saving.
  void expect_finite_parameters();

  [[nodiscard]] const TrainerOptions& options() const { return options_; }
  [[nodiscard]] Index steps_done() const { return steps_; }
  void resume_at(Index steps) { steps_ = steps; }

  [[nodiscard]] Execution<float>& execution() { return execution_; }
  [[nodiscard]] Optimizer<float>& optimizer() { return optimizer_; }

 private:
  [[nodiscard]] StepResult run_step(DataLoader& loader);
  // Adds what a phase of a step takes, and what of it goes into exchanging and waiting.
  template <class Work>
  void timed_phase(StepTimes& times,
                   double StepTimes::*total,
                   double StepTimes::*exchange,
                   Work work) const;
  void keep_statistics();
  void restore_statistics();
  void expect_finite_loss(double loss) const;
  // Number `part` of a step's passes.
  [[nodiscard]] Pass training_pass(Index part, const Targets* targets) const;
  void update();
  void fill_output_gradient();

  TrainerOptions options_;
  const Communicator* communicator_;
  Execution<float> execution_;
  Optimizer<float> optimizer_;
  bool has_loss_;
  std::vector<float> statistics_;  // the running ones before the step
  Index steps_ = 0;
};

}  // namespace tessera::engine
