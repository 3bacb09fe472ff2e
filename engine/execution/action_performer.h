// Performs the actions of a schedule on one rank, one at a time and whatever their order: computes
// with layers, in views of the activation memory, and starts and finishes transfers.

#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/execution/activation_memory.h"
#include "engine/execution/execution_options.h"
#include "engine/execution/transfer_table.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

template <class T>
class ActionPerformer {
 public:
  // All must outlive it. Has the memory leave gradients to the layers that assign them.
  ActionPerformer(const partitioner::Network& network,
                  const partitioner::Plan& plan,
                  int rank,
                  const ExecutionOptions& options,
                  ActivationMemory<T>& memory,
                  TransferTable<T>& transfers,
                  ParameterSet<T>& parameters);
  ActionPerformer(const ActionPerformer&) = delete;
  ActionPerformer& operator=(const ActionPerformer&) = delete;

  // Layers are those of another plan from now on, with the memory's views of it. Call renew_views()
  // then, and whenever the cells of that plan have changed.
  void set_plan(const partitioner::Plan& plan);
  void renew_views();

  // All but the update of parameters, which is the trainer's. `time`: see ActionPlace.
  void perform(const partitioner::Action& action, int time, const Pass& pass);
  // Memory changes hands up to that time.
  void advance(int time);

  // What this rank tells the others with the loss of the next pass.
  void set_outcome(const PassOutcome& outcome) { outcome_ = outcome; }

  [[nodiscard]] Site site(int layer) const;
  // The sum of the network's losses over the cells that this rank owns, not yet divided by images.
  // The pass has targets.
  [[nodiscard]] LossSum owned_loss(const Pass& pass);
  [[nodiscard]] Index workspace_bytes() const { return workspace_.bytes(); }

 private:
  void make_layers();
  [[nodiscard]] LayerViews<T> make_views(int layer, Stage stage);
  [[nodiscard]] LayerViews<T>& views(int layer, Stage stage) {
    return views_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] Layer<T>& at(int layer) { return *layers_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] const partitioner::LayerPlan& planned(int layer) const {
    return plan_->layers[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(layer)];
  }
  void compute(const partitioner::Action& action, int time, const Pass& pass);
  void compute_forward(int layer, int part, const Pass& pass);
  void compute_again(int layer, const Pass& pass);
  void compute_weights(int layer, int part);
  void finish(partitioner::TransferIndex transfer);

  const partitioner::Network* network_;
  const partitioner::Plan* plan_;
  int rank_;
  ExecutionOptions options_;
  ActivationMemory<T>* memory_;
  TransferTable<T>* transfers_;
  ParameterSet<T>* parameters_;
  std::vector<std::unique_ptr<Layer<T>>> layers_;
  NormStates<T> norms_;
  std::array<std::vector<LayerViews<T>>, std::size(kStages)> views_;  // by stage, then layer
  std::vector<partitioner::Loss> losses_;
  PassOutcome outcome_;
  Array<T> workspace_;
};

}  // namespace tessera::engine
