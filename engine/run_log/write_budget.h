// How much a run may write without being asked to: SD cards wear out. A simple card of 32 GB takes
// some 500 writes of each cell, and to write a little it writes a block of several times as much
// anew: about 4 to 8 TB in its life. At 1 GiB per hour that is half a year to a year of training
// day and night.

#pragma once

namespace tessera::engine {

inline constexpr double kWriteBudgetPerHour = 1024.0 * 1024 * 1024;  // bytes

// Whether a run that has written so much in its first `elapsed_s` seconds may write `more_bytes`
// now: the first hour's budget is there at its start.
[[nodiscard]] inline bool is_within_write_budget(double written_bytes,
                                                 double more_bytes,
                                                 double elapsed_s) {
  constexpr double kHour_s = 3600;
  return written_bytes + more_bytes <= kWriteBudgetPerHour * (1 + elapsed_s / kHour_s);
}

}  // namespace tessera::engine
