// From what a user named to a meter that has shown something once.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/power/meter_spec.h"
#include "engine/power/power_meter.h"

namespace tessera::engine {

// Where meters are looked for, and for how long.
struct MeterPlaces {
  std::filesystem::path root = "/";  // that sys, proc and dev lie in
  double command_s = 5;              // that a command may take
  double request_s = 2;              // that a plug may take to connect, and then to answer
};

struct OpenedMeter {
  std::optional<PowerMeter> meter;  // nothing: there is none
  std::vector<std::string> notes;   // why there is no better one, a sentence each without a point
};

// What was asked for by name has to be there and to work, else this throws InputError. `auto`
// takes the first that works of RAPL, hwmon, the PMIC and the table, and says why not an earlier
// one that is there.
[[nodiscard]] OpenedMeter open_meter(const MeterSpec& spec, const MeterPlaces& places = {});

}  // namespace tessera::engine
