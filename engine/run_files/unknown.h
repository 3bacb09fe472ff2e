// Numbers that a file does not say are NaN in its records.

#pragma once

#include <cmath>
#include <limits>

namespace tessera::engine {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
[[nodiscard]] inline bool known(double number) {
  return !std::isnan(number);
}

}  // namespace tessera::engine
