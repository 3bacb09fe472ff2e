#include "partitioner/base/quantities.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace tessera {

namespace {

std::string readable(double value, double step, const std::array<const char*, 6>& units) {
  constexpr double kRoundsToFourDigits = 999.95;
  std::size_t unit = 0;
  while (value >= kRoundsToFourDigits && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[unit])
                   : fmt::format("{:.1f}{}", value, units[unit]);
}

// Minutes and hours begin at two: 90 s is more familiar than 1.5 min.
double least_of(const ScaledUnit& multiple) {
  const std::string_view name = multiple.name;
  return name == "min" || name == "h" ? 2 * multiple.size : multiple.size;
}

constexpr ScaledUnit kSeconds[] = {{1e-3, "ms"}, {1, "s"}, {60, "min"}, {3600, "h"}};

std::string scaled_text(std::span<const ScaledUnit> multiples, double value) {
  const ScaledUnit unit = fitting_unit(multiples, value);
  return fmt::format("{} {}", three_digits(value / unit.size), unit.name);
}

// The number of digits behind the point that make two digits of a value; negative: before it.
int decimals_of_two_digits(double value) {
  const bool has_digits = value != 0 && std::isfinite(value);
  return has_digits ? 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))) : 0;
}

double rounded_to_two_digits(double value) {
  const double scale = std::pow(10.0, decimals_of_two_digits(value));
  return std::round(value * scale) / scale;
}

// Rounded first: 0.996 s is 1.0 s.
std::string scaled_to_two_digits(std::span<const ScaledUnit> multiples, double value) {
  const ScaledUnit unit = fitting_unit(multiples, rounded_to_two_digits(value));
  return fmt::format("{} {}", two_digits(value / unit.size), unit.name);
}

}  // namespace

ScaledUnit fitting_unit(std::span<const ScaledUnit> multiples, double magnitude) {
  constexpr double kRounding = 0.9995;  // what three digits would show as the next multiple
  ScaledUnit result = multiples.front();
  for (const ScaledUnit& multiple : multiples) {
    const bool fits =
        magnitude == 0 ? multiple.size == 1 : std::abs(magnitude) >= kRounding * least_of(multiple);
    result = fits ? multiple : result;
  }
  return result;
}

std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 99.95 || value == 0) {
    return fmt::format("{:.0f}", value);
  }
  if (magnitude >= 9.995) {
    return fmt::format("{:.1f}", value);
  }
  if (magnitude >= 0.01) {
    return fmt::format("{:.{}f}", value, magnitude >= 0.9995 ? 2 : magnitude >= 0.09995 ? 3 : 4);
  }
  return fmt::format("{:.2e}", value);
}

std::string two_digits(double value) {
  const double shown = rounded_to_two_digits(value);
  return fmt::format("{:.{}f}", shown, std::max(decimals_of_two_digits(shown), 0));
}

std::string readable_energy(double energy_j) {
  return scaled_text(kJoules, energy_j);
}

std::string readable_seconds(double seconds) {
  return scaled_text(kSeconds, seconds);
}

std::string predicted_energy(double energy_j) {
  return scaled_to_two_digits(kJoules, energy_j);
}

std::string predicted_seconds(double seconds) {
  return scaled_to_two_digits(kSeconds, seconds);
}

std::string readable_bytes(Index bytes) {
  return readable(static_cast<double>(bytes), 1024, {" B", " KiB", " MiB", " GiB", " TiB", " PiB"});
}

std::string readable_count(Index count) {
  return readable(static_cast<double>(count), 1000, {"", " k", " M", " G", " T", " P"});
}

std::string mebibytes(Index bytes) {
  constexpr double kMebibyte = 1024.0 * 1024.0;
  return fmt::format("{:.1f}", static_cast<double>(bytes) / kMebibyte);
}

std::string share_of(Index part, Index whole) {
  return part == 0 ? "0 %"
                   : fmt::format("{:.1f} %",
                                 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string counted(Index count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace tessera
