// Takes samples of this rank and its machine.

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/patience.h"
#include "engine/monitor/board_sensors.h"
#include "engine/monitor/monitor_sample.h"
#include "engine/monitor/network_counters.h"
#include "engine/monitor/process_usage.h"
#include "engine/power/open_meter.h"
#include "engine/power/power_sampler.h"

namespace tessera::engine {

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
  [[nodiscard]] MonitorSample take();

  // What failed and was not told before, a sentence each without a point; of each meter once.
  [[nodiscard]] std::vector<std::string> new_problems();

  // Null where there is none.
  [[nodiscard]] const MeterDescription* board_meter() const;
  [[nodiscard]] const MeterDescription* cluster_meter() const;

 private:
  struct Meter {
    std::unique_ptr<PowerSampler> sampler;  // null: there is none
    bool told = false;                      // that it failed

    void open(const MeterSpec& spec, const std::filesystem::path& root);
    // Returns for how long nothing was measured so far.
    [[nodiscard]] double look(double time_s, double& power_w, double& energy_j) const;
    void add_problem(std::vector<std::string>& problems);
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
