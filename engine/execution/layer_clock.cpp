#include "engine/execution/layer_clock.h"

#include <utility>

#include "engine/system/clock.h"

namespace tessera::engine {

void LayerClock::start(int layer, Pass pass) {
  run(&(times_[static_cast<std::size_t>(layer)].*pass));
}

void LayerClock::stop() {
  run(nullptr);
}

std::vector<partitioner::PassSeconds> LayerClock::take() {
  return std::exchange(times_, std::vector<partitioner::PassSeconds>(times_.size()));
}

void LayerClock::run(double* sum) {
  const double now = now_s();
  const double exchanged = communicator_->exchange_times().total_s();
  if (running_ != nullptr) {
    *running_ += (now - since_s_) - (exchanged - exchanged_s_);
  }
  running_ = sum;
  since_s_ = now;
  exchanged_s_ = exchanged;
}

}  // namespace tessera::engine
