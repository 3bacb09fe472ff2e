#include "engine/power/power_meter.h"

#include <cmath>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

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

std::optional<PowerReading> PowerMeter::read(const MeterQuery& query) {
  problem_.clear();
  const double start = now_s();
  try {
    const double value = look_(query);
    if (std::isfinite(value)) {
      return PowerReading{(start + now_s()) / 2, value};
    }
    problem_ = description_.source + ": not a finite number";
  } catch (const InputError& error) {
    problem_ = error.what();
  }
  return std::nullopt;
}

}  // namespace tessera::engine
