// What a detector found, as text for people and as JSON for other programs.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/metrics/detection_metrics.h"

namespace tessera::engine {

// Of one class, at a score of kConfidence and an IoU of 0.5. A share of nothing is NaN.
struct FoundCounts {
  Index true_positives = 0;
  Index false_positives = 0;
  Index false_negatives = 0;
  [[nodiscard]] double precision() const;
  [[nodiscard]] double recall() const;
  [[nodiscard]] double f1() const;
};

[[nodiscard]] FoundCounts counts_of(const JudgedClass& judged);

// COCO's twelve figures, and the three programs' means at one IoU with the reason why these
// differ. `shown` writes a share.
[[nodiscard]] std::string average_precision_table(
    const CocoFigures& coco,
    const PlainFigures& plain,
    std::string (*shown)(const std::optional<double>& share));

// The above, a line for each class, which classes are taken for which (all pairs of up to ten
// classes, else those that are confused most), and the means of the curves at some places: within
// 80 columns, but for long names of classes.
[[nodiscard]] std::string detection_table(const DetectionMetrics& metrics,
                                          const std::vector<std::string>& names);

// Adds the members of DetectionResults to `json`: see box_confusion.h for confusion, which is there
// for up to 1000 classes.
void add_detection(nlohmann::ordered_json& json,
                   const DetectionMetrics& metrics,
                   const std::vector<std::string>& names);

}  // namespace tessera::engine
