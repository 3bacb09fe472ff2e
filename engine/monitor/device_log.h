// DIR/devices.jsonl of a run: a line for each second and rank, see run_files/device_sample.h. Rank
// 0 alone has it.

#pragma once

#include <filesystem>
#include <map>

#include "engine/files/json_lines.h"
#include "engine/monitor/energy_account.h"

namespace tessera::engine {

class DeviceLog {
 public:
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on; all of
  // them where it goes on after a fault, since that time has passed for devices, whatever steps are
  // done again. Throws InputError where it cannot be written.
  DeviceLog(const std::filesystem::path& path, Index resumed_step, bool after_fault = false);

  // The time of the last line that was kept, 0 without any, and the energy until then.
  [[nodiscard]] double kept_until_s() const { return kept_.until_s; }
  [[nodiscard]] RunEnergy kept_energy() const { return energy_at(kept_.until_s, 0); }
  // The energy until `t_s`, by the last power of each of the first `ranks` ranks, which are taken
  // to have needed it for so long, but for no longer than kLongestAssumed_s.
  [[nodiscard]] RunEnergy energy_at(double t_s, int ranks) const;
  static constexpr double kLongestAssumed_s = 60;

  [[nodiscard]] JsonLines& lines() { return lines_; }

 private:
  struct Meter {
    double t_s = 0;
    double energy_j = 0;
    double power_w = 0;
  };
  struct Kept {
    double until_s = 0;
    std::map<int, Meter> boards;  // by rank
    std::optional<Meter> cluster;

    void take_in(const DeviceLine& line);
  };

  Kept kept_;  // set while lines_ is read: so declared before it
  JsonLines lines_;
};

}  // namespace tessera::engine
