#include "engine/chart/unit.h"

#include <cmath>
#include <span>

namespace tessera::engine {

namespace {

constexpr double kKibi = 1024;

constexpr ScaledUnit kNumbers[] = {{1, ""}, {1e6, "M"}, {1e9, "G"}};
constexpr ScaledUnit kShares[] = {{0.01, "%"}};
constexpr ScaledUnit kSeconds[] = {{1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}};
constexpr ScaledUnit kBytes[] = {
    {1, "B"}, {kKibi, "KiB"}, {kKibi * kKibi, "MiB"}, {kKibi * kKibi * kKibi, "GiB"}};
constexpr ScaledUnit kByteRates[] = {
    {1, "B/s"}, {kKibi, "KiB/s"}, {kKibi * kKibi, "MiB/s"}, {kKibi * kKibi * kKibi, "GiB/s"}};
constexpr ScaledUnit kCelsius[] = {{1, "°C"}};
constexpr ScaledUnit kWatts[] = {{1, "W"}, {1e3, "kW"}};
constexpr ScaledUnit kHertz[] = {{1, "Hz"}, {1e3, "kHz"}, {1e6, "MHz"}, {1e9, "GHz"}};

std::span<const ScaledUnit> scaled_units(Unit unit) {
  switch (unit) {
    case Unit::Number:
      return kNumbers;
    case Unit::Share:
      return kShares;
    case Unit::Seconds:
      return kSeconds;
    case Unit::Bytes:
      return kBytes;
    case Unit::BytesPerSecond:
      return kByteRates;
    case Unit::Celsius:
      return kCelsius;
    case Unit::Watt:
      return kWatts;
    case Unit::Joule:
      return kJoules;
    case Unit::Hertz:
      return kHertz;
  }
  return kNumbers;
}

}  // namespace

ScaledUnit scaled_unit(Unit unit, double magnitude) {
  return fitting_unit(scaled_units(unit), magnitude);
}

std::string quantity_text(double value, Unit unit) {
  if (!std::isfinite(value)) {
    return "–";
  }
  const ScaledUnit scaled = scaled_unit(unit, value);
  const std::string text = three_digits(value / scaled.size);
  return *scaled.name == '\0' ? text : text + "\u00a0" + scaled.name;
}

}  // namespace tessera::engine
