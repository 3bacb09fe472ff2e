#include "engine/replicas/synchroniser.h"

#include <algorithm>
#include <utility>

#include "engine/replicas/gossip.h"
#include "engine/replicas/local_averages.h"
#include "engine/replicas/parameter_rank.h"
#include "partitioner/base/errors.h"
#include "partitioner/plan/owned_buckets.h"

namespace tessera::engine {

Synchroniser::Synchroniser(ReplicaModel model)
    : model_(std::move(model)),
      elements_(*model_.parameters, model_.communicator->rank()),
      peers_(*model_.communicator, peers_of(*model_.plan, model_.communicator->rank())),
      scratch_(elements_.largest_bucket()) {}

std::span<float> Synchroniser::scratch(int bucket) {
  return scratch_.span().first(elements_.part_size(bucket));
}

void Synchroniser::average(std::span<float> numbers) {
  const ExchangeTimer timer(communicator(), &ExchangeTimes::reduction_s);
  peers_.average(numbers);
}

std::vector<Array<float>*> Synchroniser::own_arrays() {
  std::vector<Array<float>*> arrays;
  for (Parameter<float>& parameter : model_.parameters->all()) {
    arrays.push_back(&parameter.values);
  }
  arrays.insert(arrays.end(), model_.optimizer_state.begin(), model_.optimizer_state.end());
  return arrays;
}

void Synchroniser::assign_common_model() {
  for (Array<float>* array : own_arrays()) {
    average(array->span());
  }
}

void Synchroniser::average_statistics() {
  for (Parameter<float>& parameter : model_.parameters->all()) {
    if (is_running_statistic(*parameter.plan)) {
      average(parameter.values.span());
    }
  }
}

void Synchroniser::share_model() {
  expects(own_.empty(), "the model is not shared twice");
  settle();
  Index bytes = 0;
  for (const Array<float>* array : own_arrays()) {
    const std::span<const float> own = array->span();
    own_.emplace_back(own.begin(), own.end());
    bytes += static_cast<Index>(own.size_bytes());
  }
  own_bytes_ = std::max(own_bytes_, bytes);
  assign_common_model();
}

void Synchroniser::restore_own() {
  const std::vector<Array<float>*> arrays = own_arrays();
  for (std::size_t i = 0; i < own_.size(); ++i) {
    std::copy(own_[i].begin(), own_[i].end(), arrays[i]->data());
  }
  own_.clear();
}

std::vector<std::span<float>> Synchroniser::state() {
  settle();
  std::vector<std::span<float>> state;
  if (own_.empty()) {
    for (Array<float>* array : own_arrays()) {
      state.push_back(array->span());
    }
  } else {
    state.insert(state.end(), own_.begin(), own_.end());
  }
  for (const std::span<float> extra : extra_state()) {
    state.push_back(extra);
  }
  return state;
}

std::vector<std::span<float>> Synchroniser::own_state() {
  settle();
  return extra_state();
}

Index Synchroniser::bytes() const {
  return scratch_.bytes() + static_cast<Index>(peers_.bytes()) + own_bytes_;
}

std::unique_ptr<Synchroniser> make_synchroniser(ReplicaModel model, const SyncOptions& options) {
  const partitioner::Synchronisation sync = model.plan->replicas.sync;
  switch (sync.mode) {
    case partitioner::SyncMode::Local:
      return std::make_unique<LocalAverages>(std::move(model), sync.steps, 0);
    case partitioner::SyncMode::PostLocal:
      return std::make_unique<LocalAverages>(
          std::move(model), sync.steps, options.post_local_steps);
    case partitioner::SyncMode::ParameterRank:
      return std::make_unique<ParameterRank>(std::move(model), sync.steps);
    case partitioner::SyncMode::Gossip:
      return std::make_unique<Gossip>(std::move(model), options.seed);
    case partitioner::SyncMode::EveryStep:
      break;
  }
  expects(false, "independent replicas are synchronised in some way");
  return nullptr;
}

}  // namespace tessera::engine
