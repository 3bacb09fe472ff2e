#include "engine/detection/detection_curves.h"

#include <algorithm>

#include "engine/detection/precision_curve.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kCurvePoints = kCurveSteps + 1;

// At each place of a curve.
std::vector<double> f1_over_scores(const JudgedClass& judged) {
  std::vector<double> right_scores;
  std::vector<double> counted_scores;
  for (const JudgedBox& box : judged.boxes) {
    if (box.darknet != JudgedBox::Match::Ignored) {
      counted_scores.push_back(box.score);
    }
    if (box.darknet == JudgedBox::Match::TruePositive) {
      right_scores.push_back(box.score);
    }
  }
  std::sort(right_scores.begin(), right_scores.end());
  std::sort(counted_scores.begin(), counted_scores.end());
  const auto from = [](const std::vector<double>& scores, double least) {
    return static_cast<double>(scores.end() -
                               std::lower_bound(scores.begin(), scores.end(), least));
  };
  std::vector<double> f1(kCurvePoints);
  for (int i = 0; i <= kCurveSteps; ++i) {
    const double said = from(counted_scores, curve_place(i));
    f1[static_cast<std::size_t>(i)] =
        2 * from(right_scores, curve_place(i)) / (said + static_cast<double>(judged.true_boxes()));
  }
  return f1;
}

DetectionCurves curves_of(const JudgedClass& judged) {
  const PrecisionCurve curve = precision_curve(
      judged, judged.true_boxes(), [](const JudgedBox& box) { return box.darknet; });
  DetectionCurves curves{{}, f1_over_scores(judged)};
  for (int i = 0; i <= kCurveSteps; ++i) {
    curves.precision.push_back(curve.precision_at(curve_place(i)));
  }
  return curves;
}

std::vector<double> mean_of(const std::vector<std::optional<DetectionCurves>>& classes,
                            std::vector<double> DetectionCurves::*values) {
  std::vector<double> means(kCurvePoints);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    Mean mean;
    for (const auto& each : classes) {
      mean.add(each ? std::optional((*each.*values)[i]) : std::nullopt);
    }
    means[i] = mean.value().value_or(0);
  }
  return means;
}

}  // namespace

std::optional<BestF1> CurvesOfClasses::best_f1() const {
  if (!mean) {
    return std::nullopt;
  }
  const auto best = std::max_element(mean->f1.begin(), mean->f1.end());
  return BestF1{*best, curve_place(static_cast<int>(best - mean->f1.begin()))};
}

CurvesOfClasses detection_curves(const std::vector<JudgedClass>& judged) {
  CurvesOfClasses curves;
  bool any = false;
  for (const JudgedClass& each : judged) {
    curves.classes.emplace_back();
    if (each.true_boxes() > 0) {
      curves.classes.back() = curves_of(each);
      any = true;
    }
  }
  if (any) {
    curves.mean = DetectionCurves{mean_of(curves.classes, &DetectionCurves::precision),
                                  mean_of(curves.classes, &DetectionCurves::f1)};
  }
  return curves;
}

}  // namespace tessera::engine
