#include "engine/power/command_meter.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/processes/command_output.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

struct Unit {
  std::string_view name;
  double factor = 1;
  bool counts_joules = false;
};

constexpr std::array<Unit, 7> kUnits{{{"", 1, false},
                                      {"W", 1, false},
                                      {"mW", 1e-3, false},
                                      {"J", 1, true},
                                      {"kJ", 1e3, true},
                                      {"Wh", 3600, true},
                                      {"kWh", 3.6e6, true}}};

}  // namespace

MeterOutput meter_output(std::string_view text) {
  const std::string_view line = trimmed(text);
  const std::size_t number_end = std::min(line.find_last_of("0123456789.") + 1, line.size());
  const auto number = finite_number(line.substr(0, number_end));
  const std::string_view name = trimmed(line.substr(number_end));
  const auto* const unit = std::find_if(
      kUnits.begin(), kUnits.end(), [&](const Unit& known) { return known.name == name; });
  if (!number || unit == kUnits.end()) {
    throw InputError(
        fmt::format("\"{}\" is not a number of watts (\"12.3 W\") or of joules "
                    "counted (\"4567 J\"); units are W, mW, J, kJ, Wh, kWh",
                    printable_start(line)));
  }
  return {unit->factor * *number, unit->counts_joules};
}

PowerMeter command_meter(const std::string& command, double seconds) {
  const auto output = [command, seconds](const std::stop_token& stop) {
    const std::string text = command_output(command, seconds, stop);
    try {
      return meter_output(text);
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("the command \"{}\" printed {}", printable_start(command), error.what()));
    }
  };
  MeterDescription description;
  description.source = "command";
  description.counts_joules = output({}).counts_joules;
  return PowerMeter(
      description,
      [command, output, counts_joules = description.counts_joules](const MeterQuery& query) {
        const MeterOutput now = output(query.stop);
        if (now.counts_joules != counts_joules) {
          throw InputError(fmt::format("the command \"{}\" printed watts and joules in turn",
                                       printable_start(command)));
        }
        return now.value;
      });
}

}  // namespace tessera::engine
