// devices.jsonl: a line for each second and rank, of what the monitor of the rank knows then.

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/run_files/unknown.h"

namespace tessera::engine {

// Counters of the process are since its start, those of the interface and of energy since that of
// the run. It travels as it is between machines of different kinds. Where it stands for several
// lines, counters are those of the last one, power is the mean, and memory, temperature and
// throttling are the highest.
struct DeviceSample {
  double t_s = kUnknown;           // of the run's clock
  std::int64_t step = 0;           // steps done
  std::int64_t lines = 1;          // that it stands for, see run_view/run_limits.h; not in the file
  double cpu_user_s = kUnknown;    // of the process
  double cpu_system_s = kUnknown;  // likewise
  double wait_s = kUnknown;        // in messages, since the monitor began
  double rss_bytes = kUnknown;     // of the process
  double free_bytes = kUnknown;    // that the machine, or the control group, has left
  double rx_bytes = kUnknown;      // of the host's interface
  double tx_bytes = kUnknown;
  double rx_packets = kUnknown;
  double tx_packets = kUnknown;
  double temperature_c = kUnknown;
  double clock_hz = kUnknown;         // mean of the processors
  double throttled = kUnknown;        // flags of a Raspberry Pi's firmware; 0: not throttled
  double power_w = kUnknown;          // of this rank's board, where the rank has its meter
  double energy_j = kUnknown;         // of the same
  double gap_s = 0;                   // of these, how long nothing was measured; not in the file
  double cluster_power_w = kUnknown;  // of all boards together, on rank 0 where there is a meter
  double cluster_energy_j = kUnknown;
};

// A line. Where the rank has no meter of its own, that of the whole cluster stands for it, with
// kClusterSuffix behind its name.
struct DeviceLine : DeviceSample {
  std::int64_t rank = -1;
  std::string host = {};
  std::string power_source = {};  // empty: none

  // Of a meter of the whole cluster; not known where there is none.
  [[nodiscard]] bool has_cluster_alone() const;
  [[nodiscard]] double energy_of_cluster_j() const {
    return has_cluster_alone() ? energy_j : cluster_energy_j;
  }
};

inline constexpr const char* kClusterSuffix = " (cluster)";

// Without its end.
[[nodiscard]] std::string line_of(const DeviceLine& line);

// Nothing where it is no line of such a file.
[[nodiscard]] std::optional<DeviceLine> device_line(const nlohmann::ordered_json& line);

}  // namespace tessera::engine
