#include "engine/power/power_sampler.h"

#include <chrono>
#include <utility>

#include "engine/system/clock.h"

namespace tessera::engine {

PowerSampler::PowerSampler(PowerMeter meter)
    : description_(meter.description()),
      meter_(std::move(meter)),
      integral_(description_.counts_joules, description_.period_s),
      thread_([this](const std::stop_token& stop) { sample(stop); }) {}

PowerSampler::~PowerSampler() {
  thread_.request_stop();
  thread_.join();
}

PowerState PowerSampler::state(double time_s) const {
  const std::scoped_lock lock(mutex_);
  PowerState state;
  state.total = integral_.total(time_s);
  state.last = integral_.last();
  state.failures = failures_;
  state.problem = problem_;
  if (!problem_.empty()) {
    state.total.power_w.reset();
  }
  return state;
}

PowerState PowerSampler::state() const {
  return state(now_s());
}

// A look that takes longer than a period leaves out the next ones.
void PowerSampler::sample(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const auto period = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(description_.period_s));
  auto next = Clock::now();
  while (!stop.stop_requested()) {
    take_reading(stop);
    for (const auto now = Clock::now(); next <= now;) {
      next += period;
    }
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, stop, next, [] { return false; });
  }
}

void PowerSampler::take_reading(const std::stop_token& stop) {
  const auto reading = meter_.read({busy_cores_, stop});
  const std::scoped_lock lock(mutex_);
  if (reading) {
    problem_.clear();
    if (!integral_.add(*reading)) {
      ++failures_;
      problem_ = "its counter began anew or jumped";
    }
  } else if (!stop.stop_requested()) {
    ++failures_;
    problem_ = meter_.problem();
  }
}

}  // namespace tessera::engine
