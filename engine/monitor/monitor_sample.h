// What the monitor of a rank knows at one moment: a line of DIR/devices.jsonl. Numbers that are
// unknown are NaN. It travels as it is between machines of different kinds.

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace tessera::engine {

inline constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

struct MonitorSample {
  double t_s = 0;                   // of the run's clock
  std::int64_t step = 0;            // steps done
  double cpu_user_s = kNotKnown;    // of the process, since its start
  double cpu_system_s = kNotKnown;  // likewise
  double wait_s = kNotKnown;        // in messages, since the monitor began
  double rss_bytes = kNotKnown;     // of the process
  double free_bytes = kNotKnown;    // that the machine, or the control group, has left
  double rx_bytes = kNotKnown;      // of the host's interface, since the monitor began
  double tx_bytes = kNotKnown;
  double rx_packets = kNotKnown;
  double tx_packets = kNotKnown;
  double temperature_c = kNotKnown;
  double clock_hz = kNotKnown;         // mean of the processors
  double throttled = kNotKnown;        // flags of a Raspberry Pi's firmware
  double power_w = kNotKnown;          // of this rank's board, where the rank has its meter
  double energy_j = kNotKnown;         // since the start of the run
  double gap_s = 0;                    // of these, how long nothing was measured
  double cluster_power_w = kNotKnown;  // of all boards together, on rank 0 where there is a meter
  double cluster_energy_j = kNotKnown;
};

// What lines of one rank have in common; each is a text of JSON, "null" for nothing.
struct LineTexts {
  std::string host = "null";
  std::string power_source = "null";  // of its board; else of the whole cluster
  bool has_board_meter = false;
  bool has_cluster_meter = false;
};

// A text of JSON. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string json_string(const std::string& text);

// Without its end. The power of the whole cluster stands for that of the board where the rank has
// no meter of its own, and else at the end.
[[nodiscard]] std::string line_of(const MonitorSample& sample, int rank, const LineTexts& texts);

}  // namespace tessera::engine
