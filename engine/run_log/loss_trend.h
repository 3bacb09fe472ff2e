// Whether training has diverged although every loss was a number: the loss at the end is far above
// that of the beginning, and of guessing.

#pragma once

#include <deque>
#include <optional>

#include "partitioner/base/region.h"

namespace tessera::engine {

struct RisenLoss {
  double from = 0;  // of the first step of the run, or of guessing where that is more
  double to = 0;    // median of the last steps: single batches vary
};

class LossTrend {
 public:
  // `guess`: the loss of a network that gives all classes the same probability.
  explicit LossTrend(double guess) : from_(guess) {}

  // The loss of the first step, of a run that goes on. Where none is known, that of the first step
  // from here on counts. It may be above that of guessing: a detector's is.
  void begin_with(double loss);

  // Of each step, in order.
  void add(double loss);

  // Nothing where the loss did not rise to twice of what it was.
  [[nodiscard]] std::optional<RisenLoss> risen() const;

 private:
  double from_;
  bool begun_ = false;
  std::deque<double> last_;
};

}  // namespace tessera::engine
