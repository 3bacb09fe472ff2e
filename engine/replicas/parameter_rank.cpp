#include "engine/replicas/parameter_rank.h"

#include <algorithm>
#include <utility>

#include "engine/comm/mpi_session.h"
#include "engine/comm/patience.h"
#include "engine/comm/tags.h"

namespace tessera::engine {

using partitioner::Compression;

ParameterRank::ParameterRank(ReplicaModel model, Index staleness)
    : Synchroniser(std::move(model)),
      staleness_(staleness),
      has_thread_(staleness > 0 && MpiSession::threads_may_call()),
      compression_(this->model().plan->sync_compression),
      link_communicator_(has_thread_ ? communicator().for_another_thread() : communicator()),
      link_(link_communicator_, peers().ranks(), kParameterLinkTag),
      packed_(elements(), compression_) {
  const Index owned = elements().size();
  for (Index i = 0; i <= staleness; ++i) {
    gradients_.emplace_back(owned);
    values_.emplace_back(owned);
  }
  if (has_parameters()) {
    parameters_ = Array<float>(owned);
  } else if (is_compressed()) {
    residuals_ = Array<float>(owned);
  }
  for (int peer = 1; peer < link_.size() && (has_parameters() || peer == 1); ++peer) {
    messages_.emplace_back(packed_.most_bytes());
  }
}

ParameterRank::~ParameterRank() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

std::size_t ParameterRank::slot(Index step) const {
  const Index slots = staleness_ + 1;
  return static_cast<std::size_t>((step % slots + slots) % slots);
}

std::span<float> ParameterRank::values_after(Index step, int bucket) {
  return elements().part(bucket, values_[slot(step)]);
}

void ParameterRank::begin(Index steps_done, bool restored) {
  newest_ = steps_done;
  for (int bucket = 0; bucket < elements().buckets() && !restored; ++bucket) {
    for (Array<float>& values : values_) {
      elements().copy_values(bucket, elements().part(bucket, values));
    }
    if (has_parameters()) {
      elements().copy_values(bucket, elements().part(bucket, parameters_));
    }
  }
  if (has_thread_ && !thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
}

void ParameterRank::update(int bucket, Index step, const std::function<void()>& /*update*/) {
  const ExchangeTimer timer(communicator(), &ExchangeTimes::reduction_s);
  newest_ = step;
  elements().copy_gradients(bucket, elements().part(bucket, gradients_[slot(step)]));
  ++asked_;
  if (has_thread_) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back({step, bucket});
    }
    wake_.notify_one();
    wait_for(asked_ - staleness_ * elements().buckets());
  } else {
    exchange({step, bucket});
    ++done_;
  }
  elements().assign_values(bucket, values_after(step - staleness_, bucket));
}

void ParameterRank::wait_for(std::int64_t tasks) const {
  Patience patience(communicator().pulse());
  while (done_ < tasks) {
    patience.wait();
  }
}

void ParameterRank::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) {
      return;
    }
    const Task task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    exchange(task);
    ++done_;
  }
}

void ParameterRank::exchange(const Task& task) {
  if (has_parameters()) {
    update_for_all(task);
  } else {
    send_and_receive(task);
  }
}

// In the order of replicas, by the mean of their gradients.
void ParameterRank::update_for_all(const Task& task) {
  const auto bytes = static_cast<std::size_t>(packed_.bytes(task.bucket));
  Requests requests;
  for (int peer = 1; peer < link_.size(); ++peer) {
    link_.post_receive(requests, peer, message(peer).first(bytes));
  }
  requests.wait_all();
  const std::span<float> gradient = elements().part(task.bucket, gradients_[slot(task.step)]);
  for (int peer = 1; peer < link_.size(); ++peer) {
    take(task.bucket, message(peer).first(bytes), Taken::Added, gradient);
  }
  for (float& number : gradient) {
    number *= share();
  }
  const std::span<float> parameters = elements().part(task.bucket, parameters_);
  for (const OwnedElements::ParameterPart& part : elements().parameters(task.bucket)) {
    model().update_owned(part.parameter,
                         task.step,
                         gradient.data() + part.numbers.begin,
                         parameters.data() + part.numbers.begin);
  }
  publish(task);
}

// What all replicas get: the parameters, or of their change what a compressed message carries.
void ParameterRank::publish(const Task& task) {
  const std::span<float> parameters = elements().part(task.bucket, parameters_);
  const std::span<float> values = values_after(task.step, task.bucket);
  const std::span<std::byte> sent =
      message(1).first(static_cast<std::size_t>(packed_.bytes(task.bucket)));
  if (is_compressed()) {
    const std::span<float> before = values_after(task.step - 1, task.bucket);
    std::vector<float> change(parameters.size());
    for (std::size_t i = 0; i < change.size(); ++i) {
      change[i] = parameters[i] - before[i];
    }
    packed_.pack(task.bucket, change, sent);
    std::copy(before.begin(), before.end(), values.begin());
    packed_.add(task.bucket, sent, values);
  } else {
    std::copy(parameters.begin(), parameters.end(), values.begin());
    std::copy_n(std::as_bytes(parameters).begin(), sent.size(), sent.begin());
  }
  Requests requests;
  for (int peer = 1; peer < link_.size(); ++peer) {
    link_.post_send(requests, peer, sent);
    count(sent.size());
  }
  requests.wait_all();
}

void ParameterRank::send_and_receive(const Task& task) {
  const std::span<float> gradient = elements().part(task.bucket, gradients_[slot(task.step)]);
  const std::span<std::byte> bytes =
      message(1).first(static_cast<std::size_t>(packed_.bytes(task.bucket)));
  if (is_compressed()) {
    const std::span<float> residuals = elements().part(task.bucket, residuals_);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      residuals[i] += gradient[i];
    }
    packed_.pack(task.bucket, residuals, bytes);
    link_.send(0, bytes);
  } else {
    link_.send(0, std::as_bytes(gradient));
  }
  count(bytes.size());
  link_.receive(0, bytes);
  const std::span<float> values = values_after(task.step, task.bucket);
  if (is_compressed()) {
    const std::span<float> before = values_after(task.step - 1, task.bucket);
    std::copy(before.begin(), before.end(), values.begin());
  }
  take(task.bucket, bytes, is_compressed() ? Taken::Added : Taken::Assigned, values);
}

// What a message of the bucket carries.
void ParameterRank::take(int bucket,
                         std::span<const std::byte> message,
                         Taken how,
                         std::span<float> numbers) const {
  if (is_compressed()) {
    packed_.add(bucket, message, numbers);
    return;
  }
  const auto* from = reinterpret_cast<const float*>(message.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = how == Taken::Added ? numbers[i] + from[i] : from[i];
  }
}

void ParameterRank::settle() {
  wait_for(asked_);
}

// The newest parameters, as the others hold them, and the optimizer's state of the ranks that
// update them.
void ParameterRank::assign_common_model() {
  for (int bucket = 0; bucket < elements().buckets(); ++bucket) {
    elements().assign_values(bucket, values_after(newest_, bucket));
    model().parameters->start_values(bucket);
  }
  for (int bucket = 0; bucket < elements().buckets(); ++bucket) {
    model().parameters->finish_values(bucket);
  }
  average_statistics();
}

std::vector<std::span<float>> ParameterRank::extra_state() {
  std::vector<std::span<float>> state{parameters_.span(), residuals_.span()};
  for (Array<float>& values : values_) {
    state.push_back(values.span());
  }
  return state;
}

Index ParameterRank::bytes() const {
  Index bytes = Synchroniser::bytes() + parameters_.bytes() + residuals_.bytes();
  for (const auto* arrays : {&gradients_, &values_}) {
    for (const Array<float>& array : *arrays) {
      bytes += array.bytes();
    }
  }
  for (const Array<std::byte>& of_peer : messages_) {
    bytes += of_peer.bytes();
  }
  return bytes;
}

}  // namespace tessera::engine
