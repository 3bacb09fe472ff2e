#include "engine/chart/ticks.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace tessera::engine {

namespace {

// The smallest of 1, 2, 5, 10, ... times a power of ten that is not below.
double nice_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  constexpr double kSlack = 1 + 1e-9;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power * kSlack >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

Ticks multiples_of_step(double low, double high, double step) {
  Ticks ticks;
  ticks.step = step;
  const double slack = 1e-9 * step;
  for (double number = std::ceil((low - slack) / step); number * step <= high + slack; ++number) {
    ticks.values.push_back(number * step);
  }
  return ticks;
}

bool usable(double low, double high) {
  return std::isfinite(low) && std::isfinite(high) && low < high &&
         high - low > 1e-12 * std::max(std::abs(low), std::abs(high));
}

}  // namespace

Ticks linear_ticks(double low, double high, int most) {
  if (!usable(low, high) || most < 1) {
    return {};
  }
  // With n steps in between there may be n + 1 ticks.
  double step = nice_step((high - low) / most);
  Ticks ticks = multiples_of_step(low, high, step);
  while (static_cast<int>(ticks.values.size()) > most) {
    step = nice_step(1.5 * step);
    ticks = multiples_of_step(low, high, step);
  }
  return ticks;
}

Ticks whole_ticks(double low, double high, int most) {
  const Ticks ticks = linear_ticks(low, high, most);
  return ticks.step >= 1 || !usable(low, high) ? ticks : multiples_of_step(low, high, 1);
}

Ticks log_ticks(double low, double high) {
  if (!(low > 0) || !usable(low, high)) {
    return {};
  }
  constexpr double kFewDecades = 2.5;
  constexpr double kManyDecades = 8;
  const double decades = std::log10(high / low);
  const double every = decades > kManyDecades ? std::ceil(decades / kManyDecades) : 1;
  Ticks ticks;
  constexpr double kSlack = 1e-9;
  const double first = std::floor(std::log10(low) / every) * every;
  for (double power = first; power <= std::log10(high) + kSlack; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      const bool inside = value >= low * (1 - kSlack) && value <= high * (1 + kSlack);
      if (inside && (factor == 1 || decades <= kFewDecades)) {
        ticks.values.push_back(value);
      }
    }
  }
  return ticks;
}

std::string tick_text(double value, double step) {
  if (step <= 0) {
    return fmt::format("{:.3g}", value);
  }
  if (step >= 1e6) {
    return fmt::format("{:.3g}", value);
  }
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return decimals > 6 ? fmt::format("{:.3g}", value)
                      : fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals);
}

}  // namespace tessera::engine
