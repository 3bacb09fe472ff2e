#include <algorithm>
#include <cmath>
#include <numbers>

#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::partitioner {

namespace {

// A step below 1 counts from the start: files have steps=-1,... for a slow beginning. (Debian's
// Darknet compares unsigned numbers, so that -1 would end the list there; for the same reason its
// sigmoid is 0 before `step`.)
double steps_rate(const TrainingOptions& training, Index step) {
  double rate = training.learning_rate;
  for (std::size_t i = 0; i < training.steps.size() && training.steps[i] <= step; ++i) {
    rate *= training.scales[i];
  }
  return rate;
}

double cosine_rate(const TrainingOptions& training, Index step) {
  expects(training.max_batches > 0, "the cosine policy knows the number of steps");
  const Index first = std::max<Index>(training.burn_in, 1);
  const Index steps = std::max<Index>(training.max_batches - first + 1, 1);
  const double done = static_cast<double>(step - first) / static_cast<double>(steps);
  const double share = (1 + std::cos(std::numbers::pi * std::min(done, 1.0))) / 2;
  return training.least_rate + (training.learning_rate - training.least_rate) * share;
}

}  // namespace

double ema_decay(const TrainingOptions& training, Index step) {
  constexpr double kRise = 2000;  // steps
  const double reached = training.ema_rises ? 1 - std::exp(-static_cast<double>(step) / kRise) : 1;
  return training.ema_decay * reached;
}

double learning_rate(const TrainingOptions& training, Index step) {
  const double rate = training.learning_rate;
  const auto now = static_cast<double>(step);
  if (step < training.burn_in) {
    return rate * std::pow(now / static_cast<double>(training.burn_in), training.power);
  }
  switch (training.policy) {
    case RatePolicy::Constant:
      return rate;
    case RatePolicy::Step: {
      const Index falls = step / training.step;
      return rate * std::pow(training.scale, static_cast<double>(falls));
    }
    case RatePolicy::Steps:
      return steps_rate(training, step);
    case RatePolicy::Exp:
      return rate * std::pow(training.gamma, now);
    case RatePolicy::Poly: {
      expects(training.max_batches > 0, "the poly policy knows the number of steps");
      const double left = 1 - now / static_cast<double>(training.max_batches);
      return rate * std::pow(std::max(left, 0.0), training.power);
    }
    case RatePolicy::Sig:
      return rate / (1 + std::exp(training.gamma * static_cast<double>(step - training.step)));
    case RatePolicy::Cosine:
      return cosine_rate(training, step);
  }
  expects(false, "a rate policy is one of the enumerators");
  return rate;
}

}  // namespace tessera::partitioner
