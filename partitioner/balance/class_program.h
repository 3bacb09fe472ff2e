// The linear program of class_balance.h: how many samples of each class each device is to have,
// where samples can be divided.

#pragma once

#include <vector>

#include "partitioner/balance/class_balance.h"

namespace tessera::partitioner {

struct DividedBalance {
  std::vector<std::vector<double>> after;  // [device][class]
  double total_s = 0;                      // no choice of whole samples takes less
};

[[nodiscard]] DividedBalance solve_class_program(const BalanceProblem& problem,
                                                 const ClassSamples& classes,
                                                 double tolerance);

}  // namespace tessera::partitioner
