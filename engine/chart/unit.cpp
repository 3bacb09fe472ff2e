#include "engine/chart/unit.h"

#include <cmath>
#include <fmt/format.h>
#include <span>

namespace tessera::engine {

namespace {

constexpr double kKibi = 1024;

// Rising; the first is for all that is smaller.
constexpr ScaledUnit kNumbers[] = {{1, ""}, {1e6, "M"}, {1e9, "G"}};
constexpr ScaledUnit kShares[] = {{0.01, "%"}};
constexpr ScaledUnit kSeconds[] = {{1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}};
constexpr ScaledUnit kBytes[] = {
    {1, "B"}, {kKibi, "KiB"}, {kKibi * kKibi, "MiB"}, {kKibi * kKibi * kKibi, "GiB"}};
constexpr ScaledUnit kByteRates[] = {
    {1, "B/s"}, {kKibi, "KiB/s"}, {kKibi * kKibi, "MiB/s"}, {kKibi * kKibi * kKibi, "GiB/s"}};
constexpr ScaledUnit kCelsius[] = {{1, "°C"}};
constexpr ScaledUnit kWatts[] = {{1, "W"}, {1e3, "kW"}};
constexpr ScaledUnit kJoules[] = {{1, "J"}, {1e3, "kJ"}, {1e6, "MJ"}, {1e9, "GJ"}};
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

// Minutes and hours begin at two: 90 s is more familiar than 1.5 min.
double least_of(const ScaledUnit& multiple) {
  return multiple.size >= 60 && (multiple.name == std::string_view("min") ||
                                 multiple.name == std::string_view("h"))
             ? 2 * multiple.size
             : multiple.size;
}

}  // namespace

ScaledUnit scaled_unit(Unit unit, double magnitude) {
  constexpr double kRounding = 0.9995;  // what three digits would show as the next multiple
  ScaledUnit result = scaled_units(unit).front();
  for (const ScaledUnit& multiple : scaled_units(unit)) {
    if (std::abs(magnitude) >= kRounding * least_of(multiple)) {
      result = multiple;
    }
  }
  // Nothing at all is no microsecond.
  return magnitude == 0 && unit == Unit::Seconds ? kSeconds[2] : result;
}

std::string quantity_text(double value, Unit unit) {
  if (!std::isfinite(value)) {
    return "–";
  }
  const ScaledUnit scaled = scaled_unit(unit, value);
  const double shown = value / scaled.size;
  const double magnitude = std::abs(shown);
  std::string text;
  if (magnitude >= 99.95 || shown == 0) {
    text = fmt::format("{:.0f}", shown);
  } else if (magnitude >= 9.995) {
    text = fmt::format("{:.1f}", shown);
  } else if (magnitude >= 0.01) {
    text = fmt::format("{:.{}f}", shown, magnitude >= 0.9995 ? 2 : magnitude >= 0.09995 ? 3 : 4);
  } else {
    text = fmt::format("{:.2e}", shown);
  }
  return *scaled.name == '\0' ? text : text + "\u00a0" + scaled.name;
}

}  // namespace tessera::engine
