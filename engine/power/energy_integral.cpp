#include "engine/power/energy_integral.h"

#include <algorithm>

namespace tessera::engine {

void EnergyIntegral::add(const PowerReading& reading) {
  const double seconds = last_ ? reading.time_s - last_->time_s : 0;
  if (last_ && seconds <= 0) {
    return;
  }
  const double before = last_ ? last_->value : reading.value;
  last_ = reading;
  if (!counts_joules_) {
    power_w_ = reading.value;
  }
  if (seconds == 0) {
    return;
  }
  const double joules =
      counts_joules_ ? reading.value - before : (before + reading.value) / 2 * seconds;
  const bool gap = counts_joules_ ? joules < 0 : seconds > most_s_;
  if (counts_joules_) {
    power_w_ = gap ? std::nullopt : std::optional(joules / seconds);
  }
  energy_j_ += gap ? 0 : joules;
  (gap ? gap_s_ : measured_s_) += seconds;
}

EnergyTotal EnergyIntegral::total(double time_s) const {
  EnergyTotal total{energy_j_, measured_s_, gap_s_, power_w_};
  if (!last_) {
    return total;
  }
  const double since_s = std::max(time_s - last_->time_s, 0.0);
  if (since_s > most_s_ || !power_w_) {
    total.gap_s += since_s;
    total.power_w.reset();
  } else {
    total.energy_j += since_s * *power_w_;
    total.measured_s += since_s;
  }
  return total;
}

}  // namespace tessera::engine
