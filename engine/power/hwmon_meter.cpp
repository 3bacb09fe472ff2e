#include "engine/power/hwmon_meter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/power/sysfs_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kChips{
    "ina219", "ina220", "ina226", "ina230", "ina231", "ina238", "ina3221", "powerz"};

// Labels of the rail that feeds all others of a board (NVIDIA's Jetson).
constexpr std::array<std::string_view, 2> kSupplyLabels{"VDD_IN", "POM_5V_IN"};

struct Rail {
  fs::path power = {};    // microwatts; empty: the product of the other two
  fs::path voltage = {};  // millivolts
  fs::path current = {};  // milliamperes, negative where it flows the other way
  bool feeds_board = false;
};

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

double watts(const Rail& rail) {
  if (!rail.power.empty()) {
    return 1e-6 * number_of_file(rail.power);
  }
  return 1e-6 * number_of_file(rail.voltage) * std::abs(number_of_file(rail.current));
}

// A channel of INA3221 that nothing is connected to is switched off.
bool is_enabled(const fs::path& voltage_enable) {
  return !is_there(voltage_enable) || number_of_file(voltage_enable) != 0;
}

// What lies behind the third channel of an INA3221 is voltages of shunts, and sums.
std::vector<Rail> rails_of_ina3221(const fs::path& chip) {
  constexpr int kChannels = 3;
  std::vector<Rail> rails;
  for (int channel = 1; channel <= kChannels; ++channel) {
    const auto file = [&](const char* kind, const char* what) {
      return chip / fmt::format("{}{}_{}", kind, channel, what);
    };
    if (is_there(file("curr", "input")) && is_enabled(file("in", "enable"))) {
      const fs::path label = file("in", "label");
      rails.push_back({{},
                       file("in", "input"),
                       file("curr", "input"),
                       is_there(label) && contains(kSupplyLabels, line_of_file(label))});
    }
  }
  return rails;
}

std::vector<Rail> rails_of(const fs::path& chip, const std::string& name) {
  if (name == "ina3221") {
    return rails_of_ina3221(chip);
  }
  if (name == "powerz") {
    return {{{}, chip / "in0_input", chip / "curr1_input"}};
  }
  const fs::path power = chip / "power1_input";
  return {is_there(power) ? Rail{power} : Rail{{}, chip / "in1_input", chip / "curr1_input"}};
}

}  // namespace

std::optional<PowerMeter> find_hwmon_meter(const std::filesystem::path& root) {
  std::vector<Rail> rails;
  std::string names;
  for (const auto& chip : entries_of(root / "sys/class/hwmon")) {
    const std::string name = is_there(chip / "name") ? line_of_file(chip / "name") : "";
    if (contains(kChips, name)) {
      const std::vector<Rail> more = rails_of(chip, name);
      rails.insert(rails.end(), more.begin(), more.end());
      names += (names.empty() ? "" : "+") + name;
    }
  }
  if (names.empty()) {
    return std::nullopt;
  }
  if (rails.empty()) {
    throw InputError(names + ": all channels of this sensor are switched off");
  }
  const auto supply =
      std::find_if(rails.begin(), rails.end(), [](const Rail& rail) { return rail.feeds_board; });
  if (supply != rails.end()) {
    rails = {*supply};
  }
  MeterDescription description;
  description.source = "hwmon:" + names;
  description.scope = rails.size() == 1 ? MeterScope::Board : MeterScope::Rails;
  constexpr double kPeriod_s = 0.2;     // what changes faster is averaged out by many looks
  constexpr double kUsualError = 0.02;  // of chip and shunt, each of 1 %
  description.period_s = kPeriod_s;
  description.relative_error = kUsualError;
  return PowerMeter(description, [rails](const MeterQuery&) {
    double sum = 0;
    for (const Rail& rail : rails) {
      sum += watts(rail);
    }
    return sum;
  });
}

}  // namespace tessera::engine
