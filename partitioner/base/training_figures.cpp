#include "partitioner/base/training_figures.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "partitioner/base/quantities.h"

namespace tessera {

Index epoch_number(Index step, double epochs) {
  if (step <= 0 || !(epochs > 0)) {
    return 1;
  }
  constexpr double kRounding = 1e-9;
  const double done = std::floor(epochs + kRounding);
  const double of_a_step = epochs / static_cast<double>(step);
  const bool ends_here = epochs - done < of_a_step * (1 - kRounding);
  return std::max<Index>(1, static_cast<Index>(done) + (ends_here ? 0 : 1));
}

double sum_of_bytes(const SentMessages& sent) {
  return std::accumulate(sent.bytes.begin(), sent.bytes.end(), 0.0);
}

std::string described(const SentMessages& sent) {
  const double sum = sum_of_bytes(sent);
  if (!(sum > 0) || sent.steps <= 0) {
    return "";
  }
  const auto bytes = [](double value) {
    return readable_bytes(static_cast<Index>(std::llround(value)));
  };
  const double steps = static_cast<double>(sent.steps);
  return fmt::format("{} in {} by {}: {} per step, at most {} of it by one rank",
                     bytes(sum),
                     counted(sent.steps, "step"),
                     counted(std::ssize(sent.bytes), "rank"),
                     bytes(sum / steps),
                     bytes(*std::max_element(sent.bytes.begin(), sent.bytes.end()) / steps));
}

}  // namespace tessera
