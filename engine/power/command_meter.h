// A meter that the user has a command for.

#pragma once

#include <string>
#include <string_view>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// What a command printed: one line, a number and perhaps a unit: W (also without one), mW, or J,
// kJ, Wh, kWh of one that counts.
struct MeterOutput {
  double value = 0;  // watts, or joules
  bool counts_joules = false;
  friend bool operator==(const MeterOutput&, const MeterOutput&) = default;
};

// Throws InputError that quotes it where it is something else.
[[nodiscard]] MeterOutput meter_output(std::string_view text);

// Runs `/bin/sh -c command` for each reading, and kills it after `seconds`. The first output, which
// this waits for, says whether it counts. Throws InputError where it fails.
[[nodiscard]] PowerMeter command_meter(const std::string& command, double seconds);

}  // namespace tessera::engine
