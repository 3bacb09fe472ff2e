#include "engine/power/power_meter.h"

#include <cmath>
#include <fmt/format.h>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr double kMostJoules = 1e15;  // a counter's: kMostWatts for centuries

}  // namespace

const char* name_of(MeterScope scope) {
  switch (scope) {
    case MeterScope::Processor:
      return "processor";
    case MeterScope::Rails:
      return "rails";
    case MeterScope::Board:
      return "board";
    case MeterScope::Cluster:
      return "cluster";
  }
  return "";
}

std::string PowerMeter::doubt(double value) const {
  if (!std::isfinite(value)) {
    return description_.source + " shows what is no finite number";
  }
  const double most = description_.counts_joules ? kMostJoules : kMostWatts;
  if (value < 0 || value > most) {
    return fmt::format("{} shows {:g} {}, which cannot be",
                       description_.source,
                       value,
                       description_.counts_joules ? "J" : "W");
  }
  return "";
}

std::optional<PowerReading> PowerMeter::read(const MeterQuery& query) {
  problem_.clear();
  const double start = now_s();
  try {
    const MeterValue shown = look_(query);
    problem_ = doubt(shown.value);
    if (problem_.empty()) {
      return PowerReading{(start + now_s()) / 2, shown.value, shown.restarted};
    }
  } catch (const InputError& error) {
    problem_ = error.what();
  }
  return std::nullopt;
}

}  // namespace tessera::engine
