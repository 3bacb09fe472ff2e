// What normalisation multiplies a centred value by, scale aside.

#pragma once

#include <cmath>

#include "partitioner/network/norm_rule.h"

namespace tessera::engine {

// Of a variance, biased or not as the rule has it.
[[nodiscard]] inline double inverse_deviation(const partitioner::NormRule& rule, double variance) {
  constexpr double kDarknetDeviation = double{.000001F};  // it adds this in single precision
  return rule.form == partitioner::NormForm::Darknet ? 1 / (std::sqrt(variance) + kDarknetDeviation)
                                                     : 1 / std::sqrt(variance + rule.epsilon);
}

}  // namespace tessera::engine
