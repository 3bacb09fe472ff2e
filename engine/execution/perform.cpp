// How an execution performs a schedule.

#include <algorithm>
#include <utility>

#include "engine/execution/execution.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

using partitioner::Action;
using partitioner::kImage;
using partitioner::Phase;
using partitioner::ScheduleOptions;
using partitioner::Statistics;
using partitioner::TilePart;
using partitioner::Transfer;
using partitioner::TransferKind;

namespace {

Statistics statistics_of(BatchNormMode mode) {
  switch (mode) {
    case BatchNormMode::Sync:
      return Statistics::Batch;
    case BatchNormMode::PerTile:
      return Statistics::Tile;
    case BatchNormMode::Frozen:
      break;
  }
  return Statistics::Running;
}

// Whether the forward pass normalises with statistics of its own batch.
bool takes_statistics(const Pass& pass) {
  return pass.training && pass.batch_norm != BatchNormMode::Frozen;
}

// Sets the cells of a buffer that lie outside the map, or beside it, to 0.
template <class T>
void clear_frame(const View<T>& view, const Region& map) {
  const Region& all = view.region;
  const auto clear = [&](const Range& rows, const Range& cols) {
    set_zero(view, Region{all.images, all.channels, rows, cols});
  };
  const Range rows = intersect(all.rows, map.rows);
  const Range cols = intersect(all.cols, map.cols);
  if (rows.empty() || cols.empty()) {
    clear(all.rows, all.cols);
    return;
  }
  clear({all.rows.begin, rows.begin}, all.cols);
  clear({rows.end, all.rows.end}, all.cols);
  clear(rows, {all.cols.begin, cols.begin});
  clear(rows, {cols.end, all.cols.end});
}

}  // namespace

template <class T>
void Execution<T>::clear_output_gradient() {
  for (const std::span<std::byte> gradient : zeroing(network_->size()).gradients) {
    std::fill(gradient.begin(), gradient.end(), std::byte{});
  }
}

// Memory changes hands: what is needed from some time on finds what something else has left.
template <class T>
void Execution<T>::advance(int time) {
  if (time <= time_) {
    return;
  }
  progress_sends();
  while (time_ < time) {
    const Zeroing& now = zeroing(++time_);
    for (const typename Zeroing::Frame& frame : now.frames) {
      clear_frame(frame.cells, frame.map);
    }
    for (const std::span<std::byte> gradient : now.gradients) {
      std::fill(gradient.begin(), gradient.end(), std::byte{});
    }
  }
}

template <class T>
const typename Execution<T>::Performance& Execution<T>::performance(const Pass& pass, bool update) {
  const ScheduleOptions wanted{.training = pass.training,
                               .statistics = statistics_of(pass.batch_norm),
                               .image_gradient = options_.image_gradient,
                               .update = update};
  const auto known =
      std::find_if(performances_.begin(), performances_.end(), [&](const Performance& of) {
        return of.options.training == wanted.training &&
               of.options.statistics == wanted.statistics && of.options.update == wanted.update;
      });
  if (known != performances_.end()) {
    return *known;
  }
  Performance& made = performances_.emplace_back();
  made.options = wanted;
  made.schedule = make_schedule(*network_, *made_for_, wanted);
  made.places = action_places(*network_, *made_for_, made.schedule);
  expect_restored(made);
  return made;
}

// Whether the map comes back from pre-activations at that time.
template <class T>
bool Execution<T>::restores(int map, int time) const {
  const auto& buffers = plan_->buffers[static_cast<std::size_t>(rank())];
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const partitioner::MemorySlot& slot = arena_.restored[i];
    if (buffers[i].map == map && slot.bytes > 0 && slot.from == time) {
      return true;
    }
  }
  return false;
}

template <class T>
void Execution<T>::expect_restored(const Performance& performance) const {
  if (!performance.options.training || !options_.training) {
    return;
  }
  std::ptrdiff_t performed = 0;
  for (std::size_t i = 0; i < performance.places.size(); ++i) {
    const Action& action = performance.schedule.actions[i];
    performed += action.kind == Action::Kind::Compute && action.phase == Phase::Restore &&
                         restores(action.layer, performance.places[i].time)
                     ? 1
                     : 0;
  }
  expects(performed ==
              std::count_if(arena_.restored.begin(),
                            arena_.restored.end(),
                            [](const partitioner::MemorySlot& slot) { return slot.bytes > 0; }),
          "each map that is restored has an action of its own");
}

template <class T>
void Execution<T>::forward(const Pass& pass) {
  const Performance& forward = performance(pass, options_.training);
  time_ = kImage - 1;
  perform(forward, forward.schedule.forward, pass, [](int) {});
  finish_sends();
}

template <class T>
PassOutcome Execution<T>::exchange_loss(const Pass& pass,
                                        int stop_signal,
                                        const std::optional<PassProblem>& problem) {
  const Performance& loss = performance(pass, options_.training);
  outcome_ = {0, stop_signal, problem};
  exchanged_loss_ = pass.training && replica_loss_ ? &*replica_loss_ : &loss_;
  perform(loss, loss.schedule.loss, pass, [](int) {});
  return exchanged_loss_->total();
}

template <class T>
void Execution<T>::backward(const Pass& pass) {
  const Performance& backward = performance(pass, options_.training);
  time_ = network_->size();  // clear_output_gradient() has been called
  perform(backward, backward.schedule.backward, pass, [](int) {});
  advance(gradient_time(*network_, kImage));
  finish_sends();
}

template <class T>
void Execution<T>::finish_gradients(const Pass& pass) {
  const Performance& step = performance(pass, false);
  perform(step, step.schedule.update, pass, [](int) {});
}

template <class T>
void Execution<T>::perform(const Action& action, const ActionPlace& place, const Pass& pass) {
  advance(place.time);
  switch (action.kind) {
    case Action::Kind::Compute:
      compute(action, place.time, pass);
      break;
    case Action::Kind::Start:
      start(action.transfer);
      break;
    case Action::Kind::Finish:
      finish(action.transfer);
      break;
  }
}

template <class T>
void Execution<T>::compute(const Action& action, int time, const Pass& pass) {
  const int layer = action.layer;
  switch (action.phase) {
    case Phase::Prepare: {
      LayerViews<T>& of = views(layer, Stage::Forward);
      of.has_prepared_filters = planned(layer).prepares_filters && at(layer).prepare(of);
      break;
    }
    case Phase::Forward:
      compute_forward(layer, action.part, pass);
      break;
    case Phase::Statistics: {
      LayerViews<T>& of = views(layer, Stage::Forward);
      at(layer).statistics(of);
      if (pass.batch_norm == BatchNormMode::PerTile) {
        statistics(layer).moments->keep(of.norm->moments);
        of.shares = statistics(layer).moments->all();
      }
      break;
    }
    case Phase::Activate:
      at(layer).activate(views(layer, Stage::Forward));
      break;
    case Phase::Loss:
      outcome_.loss = pass.targets == nullptr ? 0 : owned_loss(*pass.targets);
      exchanged_loss_->set(outcome_);
      break;
    case Phase::Restore:
      if (restores(layer, time)) {
        at(layer).restore(views(layer, Stage::Backward));
      }
      break;
    case Phase::Recompute:
      compute_again(layer, pass);
      break;
    case Phase::BackwardActivation: {
      LayerViews<T>& of = views(layer, Stage::Backward);
      at(layer).backward_activation(of);
      if (of.norm != nullptr && pass.batch_norm != BatchNormMode::Sync) {
        statistics(layer).gradients->keep(of.norm->gradients);
        of.shares = statistics(layer).gradients->all();
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
    case Phase::Update:  // the trainer's
      break;
  }
}

// The parts of the tile that wait for no more than has been finished.
template <class T>
void Execution<T>::compute_forward(int layer, int part, const Pass& pass) {
  LayerViews<T>& of = views(layer, Stage::Forward);
  const std::vector<TilePart>& parts = planned(layer).forward_parts;
  for (const TilePart& of_tile : parts) {
    if (of_tile.awaits != part) {
      continue;
    }
    if (&of_tile == parts.data() && of.norm != nullptr) {
      of.shares = {};  // running statistics, if there will be no others
      if (takes_statistics(pass) && !network_->layer(layer).frozen) {
        at(layer).begin_statistics(of);
      }
    }
    at(layer).forward(pass, of, of_tile);
  }
}

// A layer of a recomputed group, as far as the group's backward pass wants it.
template <class T>
void Execution<T>::compute_again(int layer, const Pass& pass) {
  if (!arena_.again[static_cast<std::size_t>(layer)].runs) {
    return;
  }
  const LayerViews<T>& of = views(layer, Stage::Again);
  at(layer).forward(pass, of, {plan_->tile(layer, rank()).computed});
  if (of.output.data != nullptr) {
    at(layer).restore(of);
  }
}

template <class T>
void Execution<T>::compute_weights(int layer, int part) {
  const partitioner::WeightParts& parts = planned(layer).weight_parts;
  for (const Region& cells : part == 0 ? parts.at_once : parts.deferred) {
    at(layer).backward_weights(views(layer, Stage::Backward), cells);
  }
}

template <class T>
void Execution<T>::start(int number) {
  const Transfer& of = transfer(number);
  switch (of.kind) {
    case TransferKind::FeatureMap:
      edge(number).exchange.start_copy(edge(number).owned);
      break;
    case TransferKind::MapGradient:
      edge(number).exchange.start_add(edge(number).required_gradient);
      break;
    case TransferKind::BatchStatistics:
      statistics(of.subject).moments->start(views(of.subject, Stage::Forward).norm->moments);
      break;
    case TransferKind::StatisticsGradient:
      statistics(of.subject).gradients->start(views(of.subject, Stage::Backward).norm->gradients);
      break;
    case TransferKind::Loss:
      exchanged_loss_->start(of.subject);
      break;
    case TransferKind::ParameterGradient:
      parameters_.start_gradients(of.subject, of.normalized);
      break;
    case TransferKind::ParameterValue:
      parameters_.start_values(of.subject);
      break;
    case TransferKind::RunningStatistics:
      parameters_.start_statistics();
      break;
  }
}

template <class T>
void Execution<T>::finish(int number) {
  const Transfer& of = transfer(number);
  switch (of.kind) {
    case TransferKind::FeatureMap:
      edge(number).exchange.finish_copy(edge(number).required);
      break;
    case TransferKind::MapGradient:
      edge(number).exchange.finish_add(edge(number).owned_gradient);
      break;
    case TransferKind::BatchStatistics:
      statistics(of.subject).moments->finish();
      views(of.subject, Stage::Forward).shares = statistics(of.subject).moments->all();
      break;
    case TransferKind::StatisticsGradient:
      statistics(of.subject).gradients->finish();
      views(of.subject, Stage::Backward).shares = statistics(of.subject).gradients->all();
      break;
    case TransferKind::Loss:
      exchanged_loss_->finish();
      break;
    case TransferKind::ParameterGradient:
      parameters_.finish_gradients(of.subject);
      break;
    case TransferKind::ParameterValue:
      parameters_.finish_values(of.subject);
      break;
    case TransferKind::RunningStatistics:
      parameters_.finish_statistics();
      break;
  }
}

template <class T>
void Execution<T>::progress_sends() {
  for (Edge& of : edges_) {
    of.exchange.progress_sends();
  }
}

template <class T>
void Execution<T>::finish_sends() {
  const ExchangeTimer timer(*communicator_, &ExchangeTimes::maps_s);
  for (Edge& of : edges_) {
    of.exchange.finish_sends();
  }
}

template void Execution<float>::forward(const Pass&);
template PassOutcome Execution<float>::exchange_loss(const Pass&,
                                                     int,
                                                     const std::optional<PassProblem>&);
template void Execution<float>::clear_output_gradient();
template void Execution<float>::backward(const Pass&);
template void Execution<float>::finish_gradients(const Pass&);
template void Execution<float>::perform(const Action&, const ActionPlace&, const Pass&);
template const Execution<float>::Performance& Execution<float>::performance(const Pass&, bool);
template void Execution<double>::forward(const Pass&);
template PassOutcome Execution<double>::exchange_loss(const Pass&,
                                                      int,
                                                      const std::optional<PassProblem>&);
template void Execution<double>::clear_output_gradient();
template void Execution<double>::backward(const Pass&);
template void Execution<double>::finish_gradients(const Pass&);
template void Execution<double>::perform(const Action&, const ActionPlace&, const Pass&);
template const Execution<double>::Performance& Execution<double>::performance(const Pass&, bool);

}  // namespace tessera::engine
