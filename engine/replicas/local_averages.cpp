#include "engine/replicas/local_averages.h"

#include <utility>

namespace tessera::engine {

LocalAverages::LocalAverages(ReplicaModel model, Index steps, Index gradient_steps)
    : Synchroniser(std::move(model)),
      steps_(steps),
      gradient_steps_(gradient_steps),
      averages_(peers(), elements(), this->model().plan->sync_compression) {
  if (averages_.is_compressed()) {
    average_ = Array<float>(elements().size());
  }
}

void LocalAverages::begin(Index /*steps_done*/, bool restored) {
  for (int bucket = 0; bucket < elements().buckets() && averages_.is_compressed() && !restored;
       ++bucket) {
    elements().copy_values(bucket, elements().part(bucket, average_));
  }
}

void LocalAverages::update(int bucket, Index step, const std::function<void()>& update) {
  if (step <= gradient_steps_) {
    average_gradients(bucket);
  }
  update();
  if (step > gradient_steps_ && (step - gradient_steps_) % steps_ == 0) {
    average_values(bucket);
  } else if (step == gradient_steps_ && averages_.is_compressed()) {  // the same on all replicas
    elements().copy_values(bucket, elements().part(bucket, average_));
    averages_.forget_residuals(bucket);  // they are of gradients, what follows is of values
  }
}

void LocalAverages::average_gradients(int bucket) {
  const ExchangeTimer timer(communicator(), &ExchangeTimes::reduction_s);
  const std::span<float> gradients = scratch(bucket);
  elements().copy_gradients(bucket, gradients);
  averages_.average(bucket, gradients);
  elements().assign_gradients(bucket, gradients);
}

void LocalAverages::average_values(int bucket) {
  const ExchangeTimer timer(communicator(), &ExchangeTimes::reduction_s);
  const std::span<float> values = scratch(bucket);
  elements().copy_values(bucket, values);
  if (!averages_.is_compressed()) {
    averages_.average(bucket, values);
  } else {
    const std::span<float> before = elements().part(bucket, average_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] -= before[i];
    }
    averages_.average(bucket, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      before[i] += values[i];
      values[i] = before[i];
    }
  }
  elements().assign_values(bucket, values);
}

std::vector<std::span<float>> LocalAverages::extra_state() {
  return {averages_.residuals(), average_.span()};
}

Index LocalAverages::bytes() const {
  return Synchroniser::bytes() + averages_.bytes() + average_.bytes();
}

}  // namespace tessera::engine
