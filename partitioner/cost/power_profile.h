// The electric power that a device takes, by what it does. Watts; energy is time times power.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera::partitioner {

// What the watts are of.
enum class PowerScope {
  Processor,  // its processor packages alone: less than the device takes
  Rails,      // some of its supplies: likewise
  Device
};

// "processor", "rails", "device"
[[nodiscard]] const char* name_of(PowerScope scope);
[[nodiscard]] std::optional<PowerScope> power_scope_named(const std::string& name);

struct PowerProfile {
  std::string source;  // of the watts: "hwmon:ina226"
  PowerScope scope = PowerScope::Device;
  bool estimated = false;                // from published figures: nobody measured this device
  std::optional<double> relative_error;  // 0.02: 2 %; nothing: unknown
  double idle_w = 0;
  std::vector<double> busy_w;         // with 1, 2, ... cores that compute; one number at least
  std::optional<double> sending_w;    // as fast as its link carries; nothing: unknown
  std::optional<double> receiving_w;  // likewise
  friend bool operator==(const PowerProfile&, const PowerProfile&) = default;
};

// With so many cores that compute, on average: linear between whole cores. More than were measured
// take what the most did.
[[nodiscard]] double power_w(const PowerProfile& power, double busy_cores);

}  // namespace tessera::partitioner
