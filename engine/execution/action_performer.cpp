#include "engine/execution/action_performer.h"

#include <cmath>

#include "engine/layers/workspace.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::engine {

using partitioner::Action;
using partitioner::Phase;
using partitioner::TilePart;
using partitioner::Transfer;
using partitioner::TransferKind;

namespace {

// Whether the forward pass normalises with statistics of its own batch.
bool takes_statistics(const Pass& pass) {
  return pass.training && pass.batch_norm != BatchNormMode::Frozen;
}

}  // namespace

template <class T>
ActionPerformer<T>::ActionPerformer(const partitioner::Network& network,
                                    const partitioner::Plan& plan,
                                    int rank,
                                    const ExecutionOptions& options,
                                    ActivationMemory<T>& memory,
                                    TransferTable<T>& transfers,
                                    ParameterSet<T>& parameters)
    : network_(&network),
      plan_(&plan),
      rank_(rank),
      options_(options),
      memory_(&memory),
      transfers_(&transfers),
      parameters_(&parameters),
      losses_(partitioner::losses(network)) {
  for (const partitioner::LayerSpec& spec : network.layers) {
    norms_.push_back(normalizes(spec.operation) ? std::make_unique<NormState<T>>() : nullptr);
  }
  make_layers();
  for (int layer = 0; layer < network.size(); ++layer) {
    if (at(layer).assigns_input_gradients()) {
      memory.leave_gradients_to(layer);
    }
  }
  renew_views();
}

template <class T>
void ActionPerformer<T>::make_layers() {
  layers_.clear();
  for (int layer = 0; layer < network_->size(); ++layer) {
    layers_.push_back(make_layer<T>(site(layer)));
  }
}

template <class T>
void ActionPerformer<T>::set_plan(const partitioner::Plan& plan) {
  plan_ = &plan;
  make_layers();
}

template <class T>
void ActionPerformer<T>::renew_views() {
  const Index scratch =
      workspace_elements(*network_, *plan_, rank_, {options_.training, options_.image_gradient});
  if (scratch > workspace_.size()) {
    workspace_ = Array<T>(scratch);
  }
  for (const Stage stage : kStages) {
    std::vector<LayerViews<T>>& layers = views_[static_cast<std::size_t>(stage)];
    layers.clear();
    for (int layer = 0; layer < network_->size(); ++layer) {
      layers.push_back(make_views(layer, stage));
    }
  }
}

template <class T>
LayerViews<T> ActionPerformer<T>::make_views(int layer, Stage stage) {
  LayerViews<T> views = memory_->views(layer, stage);
  views.parameters = parameters_->views(layer);
  views.workspace = workspace_.data();
  views.first_gradients = memory_->begun_gradients(layer);
  views.assigned = transfers_->objects().assigned(layer);
  views.norm = norms_[static_cast<std::size_t>(layer)].get();
  return views;
}

template <class T>
Site ActionPerformer<T>::site(int layer) const {
  const auto at = static_cast<std::size_t>(layer);
  const partitioner::ActivationArena& arena = memory_->arena();
  return {network_,
          plan_,
          rank_,
          layer,
          options_.norm,
          arena.fused_pool[at],
          layer > 0 && arena.fused_pool[at - 1] == layer,
          arena.argmax_pool[at]};
}

template <class T>
LossSum ActionPerformer<T>::owned_loss(const Pass& pass) {
  expects(!losses_.empty(), "a network with a loss");
  LossSum sum;
  for (const partitioner::Loss& loss : losses_) {
    const OwnedLoss owned = engine::owned_loss(site(loss.layer),
                                               loss,
                                               pass,
                                               transfers_->objects().assigned(loss.layer),
                                               View<const T>(memory_->map(loss.layer)));
    sum.sum += owned.sum;
    sum.by_objects.sum += owned.by_objects.sum;
    sum.by_objects.count += owned.by_objects.count;
    if (loss.form == partitioner::LossForm::Boxes) {
      sum.means.push_back(owned.mean);
    }
  }
  return sum;
}

template <class T>
void ActionPerformer<T>::advance(int time) {
  if (time > memory_->time()) {
    transfers_->progress_sends();
    memory_->advance(time);
  }
}

template <class T>
void ActionPerformer<T>::perform(const Action& action, int time, const Pass& pass) {
  advance(time);
  switch (action.kind) {
    case Action::Kind::Compute:
      compute(action, time, pass);
      break;
    case Action::Kind::Start:
      transfers_->start(action.transfer, norms_, pass.targets);
      break;
    case Action::Kind::Finish:
      finish(action.transfer);
      break;
  }
}

template <class T>
void ActionPerformer<T>::finish(partitioner::TransferIndex transfer) {
  transfers_->finish(transfer);
  const Transfer& finished = plan_->transfers[transfer];
  const int layer = finished.subject;
  if (finished.kind == TransferKind::BatchStatistics) {
    views(layer, Stage::Forward).shares = transfers_->moments(layer).all();
  } else if (finished.kind == TransferKind::StatisticsGradient) {
    views(layer, Stage::Backward).shares = transfers_->statistics_gradients(layer).all();
  }
}

template <class T>
void ActionPerformer<T>::compute(const Action& action, int time, const Pass& pass) {
  const int layer = action.layer;
  switch (action.phase) {
    case Phase::Prepare: {
      LayerViews<T>& forward = views(layer, Stage::Forward);
      forward.has_prepared_filters = planned(layer).prepares_filters && at(layer).prepare(forward);
      break;
    }
    case Phase::Forward:
      compute_forward(layer, action.part, pass);
      break;
    case Phase::Statistics: {
      LayerViews<T>& forward = views(layer, Stage::Forward);
      at(layer).statistics(forward);
      if (pass.batch_norm == BatchNormMode::PerTile) {
        transfers_->moments(layer).keep(forward.norm->moments);
        forward.shares = transfers_->moments(layer).all();
      }
      break;
    }
    case Phase::Activate:
      at(layer).activate(views(layer, Stage::Forward));
      break;
    case Phase::Assign:
      transfers_->objects().assign(pass.targets);
      break;
    case Phase::Loss:
      if (pass.targets != nullptr) {
        outcome_.loss = owned_loss(pass);
      }
      transfers_->loss().set(outcome_);
      break;
    case Phase::Restore:
      if (memory_->restores(layer, time)) {
        at(layer).restore(views(layer, Stage::Backward));
      }
      break;
    case Phase::Recompute:
      compute_again(layer, pass);
      break;
    case Phase::BackwardActivation: {
      LayerViews<T>& backward = views(layer, Stage::Backward);
      at(layer).backward_activation(backward);
      if (backward.norm != nullptr && pass.batch_norm != BatchNormMode::Sync) {
        transfers_->statistics_gradients(layer).keep(backward.norm->gradients);
        backward.shares = transfers_->statistics_gradients(layer).all();
      }
      break;
    }
    case Phase::BackwardNormalize:
      at(layer).backward_normalize(pass, views(layer, Stage::Backward));
      break;
    case Phase::BackwardData:
      at(layer).backward_data(pass, views(layer, Stage::Backward));
      break;
    case Phase::BackwardWeights:
      compute_weights(layer, action.part);
      break;
    case Phase::GradientNorm:
      transfers_->loss().set({.loss = {parameters_->owned_gradient_squares(pass.step + 1)}});
      break;
    case Phase::ClipGradients: {
      const double norm = std::sqrt(transfers_->loss().total().loss.total());
      if (norm > network_->max_gradient_norm) {
        parameters_->scale_gradients(network_->max_gradient_norm / norm);
      }
      break;
    }
    case Phase::Update:  // the trainer's
      break;
  }
}

// The parts of the tile that wait for no more than has been finished.
template <class T>
void ActionPerformer<T>::compute_forward(int layer, int part, const Pass& pass) {
  LayerViews<T>& forward = views(layer, Stage::Forward);
  const std::vector<TilePart>& parts = planned(layer).forward_parts;
  for (const TilePart& tile_part : parts) {
    if (tile_part.awaits != part) {
      continue;
    }
    if (&tile_part == parts.data() && forward.norm != nullptr) {
      forward.shares = {};  // running statistics, if there will be no others
      if (takes_statistics(pass) && !network_->layer(layer).frozen) {
        at(layer).begin_statistics(forward);
      }
    }
    at(layer).forward(pass, forward, tile_part);
  }
}

// A layer of a recomputed group, as far as the group's backward pass wants it.
template <class T>
void ActionPerformer<T>::compute_again(int layer, const Pass& pass) {
  if (!memory_->arena().again[static_cast<std::size_t>(layer)].runs) {
    return;
  }
  const LayerViews<T>& again = views(layer, Stage::Again);
  at(layer).forward(pass, again, {plan_->tile(layer, rank_).computed});
  if (again.output.data != nullptr) {
    at(layer).restore(again);
  }
}

template <class T>
void ActionPerformer<T>::compute_weights(int layer, int part) {
  const partitioner::WeightParts& parts = planned(layer).weight_parts;
  LayerViews<T>& backward = views(layer, Stage::Backward);
  for (const Region& cells : part == 0 ? parts.at_once : parts.deferred) {
    backward.first_weight_gradient = parameters_->takes_first_weight_gradient(layer);
    if (backward.first_weight_gradient && !at(layer).assigns_weight_gradient(backward, cells)) {
      parameters_->begin_weight_gradient(layer);
      backward.first_weight_gradient = false;
    }
    at(layer).backward_weights(backward, cells);
  }
}

template class ActionPerformer<float>;
template class ActionPerformer<double>;

}  // namespace tessera::engine
