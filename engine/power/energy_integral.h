// Joules from the readings of one meter: differences where it counts, the trapezoid rule where it
// shows watts. Longer times without readings are gaps without energy, whose length is
// known.

#pragma once

#include <optional>

#include "engine/power/power_meter.h"

namespace tessera::engine {

struct EnergyTotal {
  double energy_j = 0;
  double measured_s = 0;          // that this is the energy of
  double gap_s = 0;               // since the first reading, of which nothing is known
  std::optional<double> power_w;  // at that time; nothing in a gap
};

class EnergyIntegral {
 public:
  // Watts are taken to change little within this many periods: a longer time without a reading is a
  // gap.
  static constexpr double kMostPeriods = 3;

  // `period_s` is the time from one reading to the next, as they are taken.
  EnergyIntegral(bool counts_joules, double period_s)
      : counts_joules_(counts_joules), most_s_(kMostPeriods * period_s) {}

  // In the order of time; two of the same time are one. Joules of a counter also count if they were
  // not read for long. Where the counter went back or began anew in between, or cannot have grown
  // so much, that time is a gap. Returns whether the reading fits the ones before.
  bool add(const PowerReading& reading);

  [[nodiscard]] const std::optional<PowerReading>& last() const { return last_; }

  // Joules from the first reading to `time_s`, which is not before the last one. Watts are taken to
  // have stayed the same since, for kMostPeriods, and what comes after them is a gap; what a
  // counter has counted since is not known yet. Never less than what was said before.
  [[nodiscard]] EnergyTotal total(double time_s);

 private:
  bool add_counted(const PowerReading& before, double seconds);
  bool add_shown(double before_w, double seconds);

  bool counts_joules_;
  double most_s_;
  double energy_j_ = 0;
  double measured_s_ = 0;
  double gap_s_ = 0;
  std::optional<double> power_w_;
  double said_j_ = 0;
  std::optional<PowerReading> last_;
};

}  // namespace tessera::engine
