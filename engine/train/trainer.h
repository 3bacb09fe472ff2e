// Training steps on one rank of several; all ranks call everything here together. One device is the
// same with one rank.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/comm/agreement.h"
#include "engine/replicas/outcome_relay.h"
#include "engine/replicas/synchroniser.h"
#include "engine/train/data_loader.h"
#include "engine/train/optimizer.h"
#include "engine/train/rank_state.h"
#include "engine/train/sized_plans.h"
#include "engine/train/trunk_cache.h"

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

  // Without what exchanging takes, packing and waiting included.
  [[nodiscard]] double computing_s() const {
    return forward_s + backward_s + update_s - forward_exchange_s - backward_exchange_s -
           update_exchange_s;
  }
};

struct StepResult {
  // Mean over the images of the step, of the network before the update; where replicas may be S
  // steps ahead of each other, of the step S steps earlier, or of the first step.
  double loss = 0;
  double learning_rate = 0;
  StepTimes times;
  std::optional<partitioner::InputSize> size;  // of the input, where it is not the configured one
  bool trunk_given = false;  // in a pass of it maps of frozen layers were given, see use()
  int stop_signal = 0;       // that some rank had by then, the same on all ranks; 0: none
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
  Index post_local_steps = 0;                         // see SyncOptions
  std::shared_ptr<const SizedPlans> sizes = nullptr;  // of multi-scale training; null: one size
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

  // Until the next step the execution has the size of input that is configured, as for a test. All
  // ranks call this together.
  void use_configured_size();
  [[nodiscard]] bool has_configured_size() const {
    return execution_.network().image == configured_;
  }

  // From here until the returned value is gone, independent replicas hold the model that they have
  // in common, which is what a checkpoint has and what is tested; then each its own again. All
  // ranks call this together, also where there are no such replicas.
  class CommonModel {
   public:
    explicit CommonModel(Synchroniser* synchroniser) : synchroniser_(synchroniser) {}
    ~CommonModel() {
      if (synchroniser_ != nullptr) {
        synchroniser_->restore_own();
      }
    }
    CommonModel(const CommonModel&) = delete;
    CommonModel& operator=(const CommonModel&) = delete;

   private:
    Synchroniser* synchroniser_;
  };
  // Where replicas may run ahead, throws AgreedError if a picture of a step so far could not
  // be read, or rank 0 has reported a problem: what they have is not worth saving then.
  [[nodiscard]] CommonModel common_model();

  // Does `work` with the averages over steps in the place of what is learnt, where there are any:
  // they are what is tested. All ranks call this together; what `work` throws, an AgreedError or
  // Stopped, it throws on all of them.
  void with_averages(const std::function<void()>& work);

  // Whether replicas may be steps ahead of each other: then nothing that all ranks do together may
  // come after each step. What rank 0 has to say of it, all learn within some steps, by an
  // AgreedError.
  [[nodiscard]] bool runs_ahead() const { return relay_ != nullptr; }
  void report(std::optional<std::string> problem);

  // For a checkpoint, and to be filled from one before resume_at().
  [[nodiscard]] RankState rank_state();
  // What of it is beside parameters and the optimizer's state of this rank. Values may be under
  // way.
  [[nodiscard]] std::vector<std::span<float>> own_arrays();

  // Called in each step when its last forward pass is done, so that values of all ranks are there,
  // and before ranks agree on its loss: when a step is done, all have done what this does. It must
  // not change anything.
  void when_forward_is_done(std::function<void()> work) { forward_done_ = std::move(work); }

  // Bytes that this rank takes to synchronise replicas, and that it has sent in steps.
  [[nodiscard]] Index synchronisation_bytes() const {
    return synchroniser_ ? synchroniser_->bytes() : 0;
  }
  [[nodiscard]] std::int64_t sent_bytes() const;

  // Throws Diverged where a weight or a statistic of any rank is not finite, which the next step's
  // loss would show: such ones are not worth saving.
  void expect_finite_parameters();

  // From now on by maps of the frozen trunk that are kept: of this trainer's execution and the
  // loader of its steps. It must outlive the steps. Not where replicas are independent or the
  // input changes its size.
  void use(TrunkCache& trunk) { trunk_ = &trunk; }

  [[nodiscard]] const TrainerOptions& options() const { return options_; }
  [[nodiscard]] Index steps_done() const { return steps_; }
  // `restored`: rank_state() has been filled with that of a run that went so far, whose
  // latest_losses() are given, too.
  void resume_at(Index steps, bool restored = false, std::vector<double> latest_losses = {}) {
    steps_ = steps;
    restored_ = restored;
    losses_before_ = std::move(latest_losses);
  }
  // Where replicas may be steps ahead of each other: losses of steps that are known and no step
  // has returned yet, the oldest first. For a checkpoint, while the common_model() is there.
  [[nodiscard]] std::vector<double> latest_losses() const;

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
  [[nodiscard]] PassOutcome outcome_of(const Pass& pass,
                                       const std::optional<std::string>& images_problem);
  void use(std::shared_ptr<const partitioner::SizedPlan> sized);
  void prepare_synchroniser();
  void begin();
  void settle();
  void update();
  void update(int bucket);
  void exchange_averages();
  void fill_output_gradient();

  TrainerOptions options_;
  const partitioner::Plan* plan_;  // by which parameters are held, whatever the size of the input
  partitioner::MapShape configured_;                     // input
  std::shared_ptr<const partitioner::SizedPlan> sized_;  // in use, where sizes change
  const Communicator* communicator_;
  Execution<float> execution_;
  Optimizer<float> optimizer_;
  std::unique_ptr<Synchroniser> synchroniser_;  // of independent replicas
  std::vector<double> losses_before_;           // of a run that this one goes on from
  std::unique_ptr<OutcomeRelay> relay_;         // of those that may run ahead
  std::optional<std::string> reported_;         // rank 0's, and not sent yet
  bool void_step_ = false;   // this replica has no pictures: its gradient counts as 0
  Index updating_step_ = 0;  // of which values, or gradients in their place, may be under way
  bool begun_ = false;
  bool restored_ = false;
  std::int64_t sent_bytes_ = 0;
  bool has_loss_;
  std::vector<float> statistics_;  // the running ones before the step
  std::function<void()> forward_done_;
  TrunkCache* trunk_ = nullptr;
  Index steps_ = 0;
};

}  // namespace tessera::engine
