#include "engine/power/energy_integral.h"

#include <algorithm>
#include <utility>

namespace tessera::engine {

bool EnergyIntegral::add(const PowerReading& reading) {
  if (!last_) {
    last_ = reading;
    power_w_ = counts_joules_ ? std::nullopt : std::optional(reading.value);
    return true;
  }
  const double seconds = reading.time_s - last_->time_s;
  if (seconds <= 0) {
    return true;
  }
  const PowerReading before = std::exchange(*last_, reading);
  return counts_joules_ ? add_counted(before, seconds) : add_shown(before.value, seconds);
}

bool EnergyIntegral::add_counted(const PowerReading& before, double seconds) {
  const double joules = last_->value - before.value;
  if (last_->restarted || joules < 0 || joules > kMostWatts * seconds) {
    power_w_.reset();
    gap_s_ += seconds;
    return false;
  }
  power_w_ = joules / seconds;
  energy_j_ += joules;
  measured_s_ += seconds;
  return true;
}

bool EnergyIntegral::add_shown(double before_w, double seconds) {
  power_w_ = last_->value;
  const double measured_s = std::min(seconds, most_s_);
  const bool gap = seconds > most_s_;
  energy_j_ += measured_s * (gap ? before_w : (before_w + last_->value) / 2);
  measured_s_ += measured_s;
  gap_s_ += seconds - measured_s;
  return true;
}

EnergyTotal EnergyIntegral::total(double time_s) {
  EnergyTotal total{energy_j_, measured_s_, gap_s_, power_w_};
  if (last_) {
    const double since_s = std::max(time_s - last_->time_s, 0.0);
    // What a counter has counted since is known when it is read.
    const double measured_s = counts_joules_ ? 0 : std::min(since_s, most_s_);
    total.energy_j += measured_s * power_w_.value_or(0);
    total.measured_s += measured_s;
    if (since_s > most_s_) {
      total.gap_s += since_s - measured_s;
      total.power_w.reset();
    }
  }
  said_j_ = std::max(said_j_, total.energy_j);
  total.energy_j = said_j_;
  return total;
}

}  // namespace tessera::engine
