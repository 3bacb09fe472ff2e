// A plan in execution on one rank. It performs the plan's schedule action by action and decides
// nothing; with a plan of one tile there are no messages, and that is all that is different on a
// single device. What an action does is in action_performer.h; cells lie in activation_memory.h,
// what travels is in transfer_table.h.
//
// A step is, once per pass: forward(), exchange_loss(), clear_output_gradient(), backward(); then
// update() or finish_gradients(). All ranks call these together.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/execution/action_clock.h"
#include "engine/execution/action_performer.h"
#include "engine/execution/activation_memory.h"
#include "engine/execution/execution_options.h"
#include "engine/execution/parameters.h"
#include "engine/execution/scheduled_pass.h"
#include "engine/execution/transfer_table.h"

namespace tessera::engine {

// Bytes that an execution has allocated, by what they are for.
struct ExecutionMemory {
  Index weights = 0;
  Index gradients = 0;    // of weights
  Index activations = 0;  // maps and their gradients, and what layers keep of them
  Index workspace = 0;
  Index messages = 0;
};

template <class T>
class Execution {
 public:
  // network, plan and communicator must outlive it.
  Execution(const partitioner::Network& network,
            const partitioner::Plan& plan,
            const Communicator& communicator,
            const ExecutionOptions& options);

  // How many images each rank has in the next passes, of a plan that cuts images alone
  // (partitioner/plan/image_shares.h): no more than the plan says, and not the same in all passes.
  // The plan and its batch are changed here alone; memory and parameters stay where they are.
  void set_images(const std::vector<Index>& images);

  // Goes on by the plan of another size of the network's input, that may take turns with the one so
  // far (partitioner/plan/sized_plan.h). Parameters stay where they are; memory for maps is freed
  // and allocated anew. Both must outlive the execution, or the next change.
  void change_to(const partitioner::Network& network, const partitioner::Plan& plan);

  // The part of the input that a rank has to fill in before forward(), and where this one does.
  [[nodiscard]] Region image_region(int rank) const;
  [[nodiscard]] View<T> image() { return maps_->memory.image(); }

  // backward() wants targets in the pass, or output_gradient() filled in after
  // clear_output_gradient(). at_trunk() is called with each map of the frozen trunk
  // (partitioner/network/frozen_trunk.h) while what this rank computes of it lies in map(): when it
  // is there, or where it is given, to put it there. The image is not looked at then.
  void forward(const Pass& pass, const std::function<void(int map)>& at_trunk = {});
  // The loss of all ranks, 0 where the pass has no targets; in a training pass of replicas that
  // need not be at the same step, that of the own replica. `stop_signal` and `problem` are what
  // this rank has to tell the others, see PassOutcome.
  [[nodiscard]] PassOutcome exchange_loss(const Pass& pass,
                                          int stop_signal = 0,
                                          const std::optional<PassProblem>& problem = {});
  void clear_output_gradient() { maps_->memory.clear_output_gradient(); }
  void backward(const Pass& pass);
  // After the pass that ends a step. update_bucket(bucket) updates the elements of its parameters
  // that this rank owns, see ParameterSet; their values may still be on their way to other ranks
  // afterwards: the next forward() waits for them.
  template <class UpdateBucket>
  void update(const Pass& pass, UpdateBucket update_bucket) {
    const ScheduledPass& update = scheduled(pass, options_.training);
    perform(update, update.schedule.update, pass, update_bucket);
  }
  // Instead of an update: owners have the gradients summed over ranks.
  void finish_gradients(const Pass& pass);

  // Cells computed here of a map's values and gradients, and the argmax of a max-pool; views of
  // nothing where there are none.
  [[nodiscard]] View<T> map(int map) { return maps_->memory.map(map); }
  [[nodiscard]] View<T> map_gradient(int map) { return maps_->memory.map_gradient(map); }
  [[nodiscard]] View<const ArgmaxOffset> argmax(int layer) { return maps_->memory.argmax(layer); }
  [[nodiscard]] View<T> output_gradient() { return map_gradient(network_->size() - 1); }

  // All of a layer's map (gather_gradient: or of the image's gradient) in (N, C, H, W) order on
  // rank 0, empty elsewhere; owners send their cells. All ranks call this together.
  [[nodiscard]] std::vector<T> gather_map(int layer);
  [[nodiscard]] std::vector<T> gather_gradient(int map);
  [[nodiscard]] std::vector<T> gather_cells(int map, View<const T> cells) const;

  // The other way: fills the input, or the gradient of the output on owned cells, from (N, C, H, W)
  // on rank 0. An output that nothing that learns leads to has no gradient: nothing is filled then.
  void scatter_image(const std::vector<T>& whole);
  void scatter_output_gradient(const std::vector<T>& whole);

  // The sum of the network's losses over the cells that this rank owns, not yet divided by images.
  // The pass has targets.
  [[nodiscard]] LossSum owned_loss(const Pass& pass) { return maps_->performer.owned_loss(pass); }

  // Of a head that objects are assigned to: those of this rank's cells, in the last
  // exchange_loss(); else null. And what backward() multiplies the deltas of such heads by.
  [[nodiscard]] const HeadAssignment* assigned(int layer) const {
    return maps_->transfers.objects().assigned(layer);
  }
  [[nodiscard]] double object_scale() const;

  // When the values that other ranks have sent are there.
  [[nodiscard]] ParameterSet<T>& parameters() {
    parameters_.finish_values();
    return parameters_;
  }
  // While some may still be on their way: for what does not touch them. All that forward() reads it
  // waits for.
  [[nodiscard]] ParameterSet<T>& parameters_under_way() { return parameters_; }
  [[nodiscard]] const partitioner::Network& network() const { return *network_; }
  [[nodiscard]] const partitioner::Plan& plan() const { return *plan_; }
  [[nodiscard]] const Communicator& communicator() const { return *communicator_; }
  // By all plans so far, the most of each.
  [[nodiscard]] ExecutionMemory memory() const;
  // By layer, what passes since the last call took to compute here.
  [[nodiscard]] std::vector<partitioner::PassSeconds> take_computing_times() {
    return clock_.take();
  }

  // What a pass performs; of which record() notes each action from then on, or none.
  [[nodiscard]] const partitioner::Schedule& schedule(const Pass& pass) {
    return scheduled(pass, options_.training).schedule;
  }
  void record(bool on) { clock_.record(on); }
  [[nodiscard]] const std::vector<PerformedAction>& performed() const { return clock_.performed(); }

 private:
  [[nodiscard]] const ScheduledPass& scheduled(const Pass& pass, bool update);
  void count_objects(const Pass& pass, double cells);
  void expect_restored(const ScheduledPass& pass) const;
  template <class UpdateBucket>
  void perform(const ScheduledPass& scheduled,
               partitioner::ActionIndex i,
               const Pass& pass,
               UpdateBucket update_bucket) {
    const partitioner::Action& action = scheduled.schedule.actions[i];
    const bool is_spared = pass.trunk_given && scheduled.of_trunk[i];
    if (!is_performed(action, pass_of_step(pass)) || is_spared) {
      return;
    }
    const ActionPlace& place = scheduled.places[i];
    const ActionClock::Span span(clock_, place, i, pass.number);
    if (action.bucket >= 0) {
      update_bucket(action.bucket);
    } else {
      maps_->performer.perform(action, place.time, pass);
    }
  }
  template <class UpdateBucket>
  void perform(const ScheduledPass& scheduled,
               const partitioner::Section& section,
               const Pass& pass,
               UpdateBucket update_bucket) {
    for (partitioner::ActionIndex i = section.begin; i < section.end; ++i) {
      perform(scheduled, i, pass, update_bucket);
    }
  }
  [[nodiscard]] int rank() const { return communicator_->rank(); }

  // What depends on the sizes of maps.
  struct Maps {
    explicit Maps(Execution& of);
    ActivationMemory<T> memory;
    TransferTable<T> transfers;
    ActionPerformer<T> performer;
  };

  const partitioner::Network* network_;
  const partitioner::Plan* made_for_;               // what decides the order of a step, and memory
  const partitioner::Plan* plan_;                   // with the images of the next pass
  std::unique_ptr<partitioner::Plan> with_images_;  // where these were set
  std::vector<Index> images_;                       // by rank
  double object_cells_ = 0;  // of the step: cells that have got an object, on all ranks
  const Communicator* communicator_;
  ExecutionOptions options_;
  ParameterSet<T> parameters_;
  std::optional<Maps> maps_;
  ExecutionMemory most_;                 // of plans before this one
  std::deque<ScheduledPass> scheduled_;  // that have been asked for
  ActionClock clock_;
};

}  // namespace tessera::engine
