// Units of what charts show: which multiple of a unit fits a number, and numbers with their unit.

#pragma once

#include <string>

#include "partitioner/base/quantities.h"

namespace tessera::engine {

enum class Unit {
  Number,
  Share,  // of 1, shown in per cent
  Seconds,
  Bytes,
  BytesPerSecond,
  Celsius,
  Watt,
  Joule,
  Hertz
};

// See fitting_unit().
[[nodiscard]] ScaledUnit scaled_unit(Unit unit, double magnitude);

// "1.42 s", "512 KiB/s", "97.3 %", with three significant digits; a dash for what is no number.
[[nodiscard]] std::string quantity_text(double value, Unit unit);

}  // namespace tessera::engine
