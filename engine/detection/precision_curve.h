// Precision over recall, as the boxes of a class are taken from the highest score on.

#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "engine/detection/judged_boxes.h"

namespace tessera::engine {

// One point for each box. A precision is at least what a higher recall has.
struct PrecisionCurve {
  std::vector<double> recalls;
  std::vector<double> precisions;

  // At the first point that reaches `recall`; 0 where none does.
  [[nodiscard]] double precision_at(double recall) const {
    const auto at = std::lower_bound(recalls.begin(), recalls.end(), recall);
    return at == recalls.end() ? 0 : precisions[static_cast<std::size_t>(at - recalls.begin())];
  }
};

// `match_of(box)` says what a box counts as, and is asked again and again. The order of boxes with
// one score is that in which they are given.
template <class MatchOf>
PrecisionCurve precision_curve(const JudgedClass& judged, Index true_boxes, MatchOf match_of) {
  const auto counts = [&](const JudgedBox& box) {
    return match_of(box) != JudgedBox::Match::Ignored;
  };
  std::vector<const JudgedBox*> order;
  order.reserve(
      static_cast<std::size_t>(std::count_if(judged.boxes.begin(), judged.boxes.end(), counts)));
  for (const JudgedBox& box : judged.boxes) {
    if (counts(box)) {
      order.push_back(&box);
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const JudgedBox* a, const JudgedBox* b) {
    return a->score > b->score;
  });
  PrecisionCurve curve;
  curve.recalls.reserve(order.size());
  curve.precisions.reserve(order.size());
  double right = 0;
  double wrong = 0;
  for (const JudgedBox* box : order) {
    (match_of(*box) == JudgedBox::Match::TruePositive ? right : wrong) += 1;
    curve.recalls.push_back(right / static_cast<double>(true_boxes));
    curve.precisions.push_back(right / (right + wrong + std::numeric_limits<double>::epsilon()));
  }
  for (std::size_t i = curve.precisions.size(); i-- > 1;) {
    curve.precisions[i - 1] = std::max(curve.precisions[i - 1], curve.precisions[i]);
  }
  return curve;
}

// Of the values that there are.
class Mean {
 public:
  void add(const std::optional<double>& value) {
    sum_ += value.value_or(0);
    count_ += value ? 1 : 0;
  }
  [[nodiscard]] std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / count_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  double count_ = 0;
};

}  // namespace tessera::engine
