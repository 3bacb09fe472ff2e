// What is said of the energy of a run: how much, by which meters, and how sure that is.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/power/power_meter.h"
#include "engine/run_files/device_sample.h"

namespace tessera::engine {

// Whose meter a rank has.
struct RankMeter {
  std::string source;
  bool estimated = false;
  std::optional<double> relative_error;
  bool cluster = false;  // of all boards together, beside one of the rank's own board or not
  friend bool operator==(const RankMeter&, const RankMeter&) = default;
};

[[nodiscard]] RankMeter rank_meter(const MeterDescription& description);

// One line of JSON, and back. Throws nothing: what is no such line has no meters.
[[nodiscard]] std::string to_line(const std::vector<RankMeter>& meters);
[[nodiscard]] std::vector<RankMeter> meters_of_line(const std::string& line);

// A sample of a rank with those meters, without the rank's name. The power of the whole cluster
// stands for that of the board where the rank has no meter of its own, and else beside it.
[[nodiscard]] DeviceLine measured_line(const DeviceSample& sample,
                                       const std::vector<RankMeter>& meters);

// "energy of the run: 12.3 kJ (hwmon:ina226 of pi1; table:Raspberry Pi 3 of pi2, pi3, estimated,
// +-25 %)", without its end. `meters` and `hosts` are those of ranks; `gap_s`: for how long nothing
// was measured; `assumed_s`: for how long before the ranks of now began.
[[nodiscard]] std::string energy_text(double total_j,
                                      double gap_s,
                                      const std::vector<std::vector<RankMeter>>& meters,
                                      const std::vector<std::string>& hosts,
                                      double assumed_s = 0);

}  // namespace tessera::engine
