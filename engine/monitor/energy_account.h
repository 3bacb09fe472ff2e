// The energy of a run, by device and in total, from samples of meters.
//
// Between two samples a device is taken to need the power of the last one, for a few seconds:
// longer ones are a gap. What the next sample says puts it right.

#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/run_files/device_sample.h"

namespace tessera::engine {

// Joules; nothing where there is no meter.
struct RunEnergy {
  std::optional<double> total_j;                 // of all devices
  std::vector<std::optional<double>> of_rank_j;  // of the board that the rank has the meter of
};

// Energy from one moment to the next.
class EnergyInterval {
 public:
  explicit EnergyInterval(RunEnergy begin = {}) : begin_(std::move(begin)) {}

  // From the last moment to `now`, which is the last one from here on.
  [[nodiscard]] RunEnergy next(const RunEnergy& now);

 private:
  RunEnergy begin_;
};

class EnergyAccount {
 public:
  // `before`: what was used before, by a run that is resumed.
  explicit EnergyAccount(int ranks, const RunEnergy& before = {});

  // Samples of one rank in the order of their times.
  void add(int rank, const DeviceSample& sample);

  // With what was used before added to the energies of a sample.
  [[nodiscard]] DeviceSample since_start(int rank, DeviceSample sample) const;

  // As of a moment of the run's clock. Never less than what was said before.
  [[nodiscard]] RunEnergy at(double t_s);
  // As of the last sample of each device: once there are no more, that is all.
  [[nodiscard]] RunEnergy of_samples() { return at(0); }

  // For how long nothing was measured, of the device where that is most.
  [[nodiscard]] double longest_gap_s() const;

 private:
  struct Meter {
    double t_s = 0;
    double energy_j = kUnknown;  // of this process
    double power_w = kUnknown;
    double gap_s = 0;

    [[nodiscard]] std::optional<double> at(double now_s) const;
  };

  std::vector<Meter> boards_;
  Meter cluster_;
  RunEnergy before_;
  RunEnergy said_;
};

}  // namespace tessera::engine
