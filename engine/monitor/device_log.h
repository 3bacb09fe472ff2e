// DIR/devices.jsonl of a run: a line for each second and rank, see monitor_sample.h. Rank 0 alone
// has it.

#pragma once

#include <filesystem>
#include <map>

#include "engine/files/json_lines.h"
#include "engine/monitor/energy_account.h"

namespace tessera::engine {

class DeviceLog {
 public:
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on. Throws
  // InputError where it cannot be written.
  DeviceLog(const std::filesystem::path& path, Index resumed_step);

  // The time of the last line that was kept, 0 without any, and the energy until then.
  [[nodiscard]] double kept_until_s() const { return kept_.until_s; }
  [[nodiscard]] RunEnergy kept_energy() const;

  [[nodiscard]] JsonLines& lines() { return lines_; }

 private:
  struct Kept {
    double until_s = 0;
    std::map<int, double> boards_j;  // by rank
    std::optional<double> cluster_j;

    void take_in(const nlohmann::json& line);
  };

  Kept kept_;  // set while lines_ is read: so declared before it
  JsonLines lines_;
};

// What the source of a meter of the whole cluster ends with.
inline constexpr const char* kClusterSuffix = " (cluster)";

}  // namespace tessera::engine
