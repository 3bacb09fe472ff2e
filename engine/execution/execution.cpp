#include "engine/execution/execution.h"

#include <algorithm>

#include "engine/execution/whole_maps.h"
#include "partitioner/base/errors.h"
#include "partitioner/plan/image_shares.h"
#include "partitioner/plan/sized_plan.h"

namespace tessera::engine {

using partitioner::Action;
using partitioner::kImage;
using partitioner::Phase;

template <class T>
Execution<T>::Execution(const partitioner::Network& network,
                        const partitioner::Plan& plan,
                        const Communicator& communicator,
                        const ExecutionOptions& options)
    : network_(&network),
      made_for_(&plan),
      plan_(&plan),
      communicator_(&communicator),
      options_(options),
      parameters_(network, plan, communicator, options.training),
      clock_(communicator, network.size()) {
  maps_.emplace(*this);
}

template <class T>
Execution<T>::Maps::Maps(Execution& of)
    : memory(*of.network_,
             *of.plan_,
             of.rank(),
             {sizeof(T), of.options_.training, of.options_.image_gradient, of.options_.keep_maps}),
      transfers(*of.network_,
                *of.plan_,
                *of.communicator_,
                memory,
                of.parameters_,
                of.options_.image_gradient),
      performer(
          *of.network_, *of.plan_, of.rank(), of.options_, memory, transfers, of.parameters_) {}

template <class T>
void Execution<T>::change_to(const partitioner::Network& network, const partitioner::Plan& plan) {
  expects(may_take_turns(*made_for_, plan), "plans hold and own the same of parameters");
  parameters_.finish_values();  // the next forward pass waits for them by another schedule
  most_ = memory();
  scheduled_.clear();
  maps_.reset();
  with_images_.reset();
  images_.clear();
  network_ = &network;
  made_for_ = &plan;
  plan_ = &plan;
  maps_.emplace(*this);
}

template <class T>
void Execution<T>::set_images(const std::vector<Index>& images) {
  if (images == images_) {
    return;
  }
  if (with_images_ == nullptr) {
    expects(cuts_images_alone(*network_, *made_for_), "images alone are cut");
    with_images_ = std::make_unique<partitioner::Plan>(*made_for_);
    plan_ = with_images_.get();
    maps_->memory.set_plan(*plan_);
    maps_->performer.set_plan(*plan_);
  }
  for (int rank = 0; rank < made_for_->ranks; ++rank) {
    expects(
        images[static_cast<std::size_t>(rank)] <= made_for_->tile(kImage, rank).owned.images.size(),
        "no more images than the plan has room for");
  }
  partitioner::set_images(*network_, images, *with_images_);
  const bool same_contribute = std::equal(
      images.begin(), images.end(), images_.begin(), images_.end(), [](Index a, Index b) {
        return (a > 0) == (b > 0);
      });
  images_ = images;
  if (!same_contribute) {
    maps_->transfers.set_statistics(*plan_);
  }
  maps_->transfers.set_plan(*plan_);
  maps_->performer.renew_views();
}

template <class T>
Region Execution<T>::image_region(int rank) const {
  return partitioner::image_region(*network_, *plan_, rank);
}

template <class T>
const ScheduledPass& Execution<T>::scheduled(const Pass& pass, bool update) {
  const partitioner::ScheduleOptions wanted =
      schedule_options(pass, options_.image_gradient, update);
  const auto known =
      std::find_if(scheduled_.begin(), scheduled_.end(), [&wanted](const ScheduledPass& made) {
        return made.options == wanted;
      });
  if (known != scheduled_.end()) {
    return *known;
  }
  scheduled_.push_back(make_scheduled_pass(*network_, *made_for_, wanted));
  expect_restored(scheduled_.back());
  return scheduled_.back();
}

template <class T>
void Execution<T>::expect_restored(const ScheduledPass& pass) const {
  if (!pass.options.training || !options_.training) {
    return;
  }
  Index restored = 0;
  for (const partitioner::ActionIndex i : pass.places.indices()) {
    const Action& action = pass.schedule.actions[i];
    const bool restores = action.kind == Action::Kind::Compute && action.phase == Phase::Restore;
    restored += restores && maps_->memory.restores(action.layer, pass.places[i].time) ? 1 : 0;
  }
  expects(restored == maps_->memory.count_restored(),
          "each map that is restored has an action of its own");
}

template <class T>
void Execution<T>::forward(const Pass& pass, const std::function<void(int map)>& at_trunk) {
  const ScheduledPass& forward = scheduled(pass, options_.training);
  const partitioner::Section& all = forward.schedule.forward;
  maps_->memory.set_time(kImage - 1);
  for (partitioner::ActionIndex i = all.begin; i < all.end; ++i) {
    perform(forward, i, pass, [](int) {});
    if (at_trunk && forward.completes[i] != partitioner::kNoMap) {
      maps_->performer.advance(forward.places[i].time);
      at_trunk(forward.completes[i]);
    }
  }
  maps_->transfers.finish_sends();
}

template <class T>
PassOutcome Execution<T>::exchange_loss(const Pass& pass,
                                        int stop_signal,
                                        const std::optional<PassProblem>& problem) {
  const ScheduledPass& loss = scheduled(pass, options_.training);
  PassOutcome mine;
  mine.stop_signal = stop_signal;
  mine.problem = problem;
  maps_->performer.set_outcome(mine);
  maps_->transfers.select_loss(pass.training);
  perform(loss, loss.schedule.loss, pass, [](int) {});
  PassOutcome total = maps_->transfers.loss().total();
  count_objects(pass, total.loss.by_objects.count);
  return total;
}

// Losses over the cells that have got an object are divided by all of these in a step: what its
// earlier passes have added to gradients is, too. In networks without such losses there are none.
template <class T>
void Execution<T>::count_objects(const Pass& pass, double cells) {
  const double before = pass.number == 0 ? 0 : object_cells_;
  object_cells_ = before + cells;
  if (pass.number > 0 && pass.training && cells > 0) {
    parameters_.scale_gradients(LossSum::divisor(before) / LossSum::divisor(object_cells_));
  }
}

template <class T>
double Execution<T>::object_scale() const {
  const bool has_own_sum = made_for_->replicas.run_ahead();  // each copy
  return (has_own_sum ? 1 : made_for_->copies()) / LossSum::divisor(object_cells_);
}

template <class T>
void Execution<T>::backward(const Pass& pass) {
  const ScheduledPass& backward = scheduled(pass, options_.training);
  maps_->memory.set_time(network_->size());  // clear_output_gradient() has been called
  Pass with_scale = pass;
  with_scale.object_scale = object_scale();
  perform(backward, backward.schedule.backward, with_scale, [](int) {});
  maps_->performer.advance(gradient_time(*network_, kImage));
  maps_->transfers.finish_sends();
}

template <class T>
void Execution<T>::finish_gradients(const Pass& pass) {
  const ScheduledPass& step = scheduled(pass, false);
  perform(step, step.schedule.update, pass, [](int) {});
}

template <class T>
std::vector<T> Execution<T>::gather_cells(int map, View<const T> cells) const {
  const Region whole = whole_map(*network_, map, plan_->batch);
  return gather_whole(*communicator_, whole, owned_regions(*plan_, map), cells);
}

template <class T>
std::vector<T> Execution<T>::gather_map(int layer) {
  return gather_cells(layer, map(layer));
}

template <class T>
std::vector<T> Execution<T>::gather_gradient(int map) {
  return gather_cells(map, map_gradient(map));
}

template <class T>
void Execution<T>::scatter_image(const std::vector<T>& whole) {
  std::vector<Region> regions;
  regions.reserve(static_cast<std::size_t>(plan_->ranks));
  for (int to = 0; to < plan_->ranks; ++to) {
    regions.push_back(image_region(to));
  }
  scatter_whole(
      *communicator_, whole_map(*network_, kImage, plan_->batch), regions, whole, image());
}

template <class T>
void Execution<T>::scatter_output_gradient(const std::vector<T>& whole) {
  const int last = network_->size() - 1;
  if (!network_->takes_gradient(last)) {
    return;
  }
  scatter_whole(*communicator_,
                whole_map(*network_, last, plan_->batch),
                owned_regions(*plan_, last),
                whole,
                output_gradient());
}

template <class T>
ExecutionMemory Execution<T>::memory() const {
  return {
      .weights = parameters_.value_bytes(),
      .gradients = parameters_.gradient_bytes(),
      .activations = std::max(most_.activations, maps_->memory.bytes()),
      .workspace = std::max(most_.workspace, maps_->performer.workspace_bytes()),
      .messages = std::max(most_.messages, parameters_.message_bytes() + maps_->transfers.bytes())};
}

template class Execution<float>;
template class Execution<double>;

}  // namespace tessera::engine
