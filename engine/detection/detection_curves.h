// Curves of a detector over recall and score, by Darknet's rule of what is a true positive, at an
// IoU of kPlainIou.

#pragma once

#include <optional>
#include <vector>

#include "engine/detection/judged_boxes.h"

namespace tessera::engine {

// Points lie at 0, 1 / kCurveSteps ... 1.
inline constexpr int kCurveSteps = 100;
[[nodiscard]] constexpr double curve_place(int point) {
  return static_cast<double>(point) / kCurveSteps;
}

struct DetectionCurves {
  // At each recall the best precision of that or a higher recall; 0 where it is not reached.
  std::vector<double> precision;
  // At each score the F1 of boxes with that or a higher score.
  std::vector<double> f1;
  friend bool operator==(const DetectionCurves&, const DetectionCurves&) = default;
};

// The highest mean of F1, and the lowest score from which on boxes have it.
struct BestF1 {
  double f1 = 0;
  double score = 0;
};

struct CurvesOfClasses {
  std::vector<std::optional<DetectionCurves>> classes;  // nothing where there are no objects
  std::optional<DetectionCurves> mean;                  // over classes with objects

  // Nothing where there is no mean.
  [[nodiscard]] std::optional<BestF1> best_f1() const;
};

[[nodiscard]] CurvesOfClasses detection_curves(const std::vector<JudgedClass>& judged);

}  // namespace tessera::engine
