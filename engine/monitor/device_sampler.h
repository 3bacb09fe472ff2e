// Takes samples of this rank and its machine.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/patience.h"
#include "engine/monitor/board_sensors.h"
#include "engine/monitor/network_counters.h"
#include "engine/monitor/process_usage.h"
#include "engine/power/open_meter.h"
#include "engine/power/power_sampler.h"
#include "engine/run_files/device_sample.h"

namespace tessera::engine {

// What the meters of a rank have counted so far: differences of two readings are what was used
// meanwhile.
struct MeterReading {
  struct Meter {
    bool is_there = false;
    double energy_j = 0;
    double measured_s = 0;  // that this is the energy of
    double relative_error = 0;
    bool estimated = false;

    // Mean watts since an earlier reading; nothing where it measured nothing.
    [[nodiscard]] std::optional<double> watts_since(const Meter& before) const {
      const double seconds = measured_s - before.measured_s;
      return seconds > 0 ? std::optional((energy_j - before.energy_j) / seconds) : std::nullopt;
    }
  };
  Meter board;
  Meter cluster;  // of all boards together
};

class DeviceSampler {
 public:
  struct Options {
    std::filesystem::path root = "/";  // that proc, sys and dev lie in
    std::string interface;             // by which messages go
    const Pulse* pulse = nullptr;      // that counts waits; null: nobody waits
    RankMeters meters;
  };

  // Throws InputError where a meter that was asked for by name does not work.
  explicit DeviceSampler(Options options);

  // All but time and step. Meters are not waited for.
  [[nodiscard]] DeviceSample take();

  // What failed since the last call, a sentence each without a full stop; once for each meter.
  [[nodiscard]] std::vector<std::string> new_problems();

  [[nodiscard]] MeterReading meter_reading() const;

  // Null where there is none.
  [[nodiscard]] const MeterDescription* board_meter() const;
  [[nodiscard]] const MeterDescription* cluster_meter() const;

 private:
  struct Meter {
    std::unique_ptr<PowerSampler> sampler;  // null: there is none
    bool reported = false;                  // that it failed

    void open(const MeterSpec& spec, const std::filesystem::path& root);
    // Returns for how long nothing was measured so far.
    [[nodiscard]] double look(double time_s, double& power_w, double& energy_j) const;
    void add_problem(std::vector<std::string>& problems);
    [[nodiscard]] MeterReading::Meter reading() const;
  };

  std::filesystem::path root_;
  const Pulse* pulse_;
  double waited_before_s_;  // this was made
  double waited_s_ = 0;     // since then
  NetworkUse network_;
  BoardSensors board_;
  BusyCores busy_;
  Meter board_meter_;
  Meter cluster_meter_;
};

}  // namespace tessera::engine
