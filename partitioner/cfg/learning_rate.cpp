#include <algorithm>
#include <cmath>
#include <limits>
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

double yolox_rate(const TrainingOptions& training, Index step) {
  expects(training.max_batches > 0, "the yolox policy knows the number of steps");
  constexpr double kLeast = 0.05;
  const Index done = step - 1;
  const Index warm_up = warm_up_steps(training);
  const Index flat_from = training.max_batches - steps_of_epochs(training, training.flat_epochs);
  if (warm_up > 0 && done <= warm_up) {
    const double risen = static_cast<double>(done) / static_cast<double>(warm_up);
    return training.learning_rate * risen * risen;
  }
  if (done >= flat_from) {
    return training.learning_rate * kLeast;
  }
  const double fallen =
      static_cast<double>(done - warm_up) / static_cast<double>(flat_from - warm_up);
  const double share = (1 + std::cos(std::numbers::pi * fallen)) / 2;
  return training.learning_rate * (kLeast + (1 - kLeast) * share);
}

}  // namespace

Index steps_of_epochs(const TrainingOptions& training, Index epochs) {
  return (epochs * training.epoch_pictures + training.batch - 1) / training.batch;
}

Index warm_up_steps(const TrainingOptions& training) {
  return training.warm_up_epochs > 0 ? steps_of_epochs(training, training.warm_up_epochs)
                                     : training.burn_in;
}

bool depends_on_length(const TrainingOptions& training) {
  return training.policy == RatePolicy::Poly || training.policy == RatePolicy::Cosine ||
         training.policy == RatePolicy::Yolox || training.no_mosaic_epochs > 0;
}

bool in_last_epochs(const TrainingOptions& training, Index step) {
  return step > steps_before_last_epochs(training);
}

Index steps_before_last_epochs(const TrainingOptions& training) {
  return training.no_mosaic_epochs == 0
             ? std::numeric_limits<Index>::max()
             : training.max_batches - steps_of_epochs(training, training.no_mosaic_epochs);
}

double ema_decay(const TrainingOptions& training, Index step) {
  constexpr double kRise = 2000;  // steps
  const double reached = training.ema_rises ? 1 - std::exp(-static_cast<double>(step) / kRise) : 1;
  return training.ema_decay * reached;
}

double learning_rate(const TrainingOptions& training, Index step) {
  const double rate = training.learning_rate;
  const auto now = static_cast<double>(step);
  if (training.policy == RatePolicy::Yolox) {
    return yolox_rate(training, step);
  }
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
    case RatePolicy::Yolox:
      break;
  }
  expects(false, "a rate policy is one of the enumerators");
  return rate;
}

}  // namespace tessera::partitioner
