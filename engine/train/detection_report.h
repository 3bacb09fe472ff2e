// What a detector found, as text for people and as JSON for other programs.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/train/detection_metrics.h"

namespace tessera::engine {

// The score from which a box counts as said, as in Darknet.
inline constexpr double kSaidScore = 0.25;

// Of one class, at a score of kSaidScore and an overlap of 0.5. A share of nothing is NaN.
struct FoundCounts {
  Index right = 0;
  Index wrong = 0;
  Index missed = 0;
  [[nodiscard]] double precision() const;
  [[nodiscard]] double recall() const;
  [[nodiscard]] double f1() const;  // twice the right ones, by all that were said or are there
};

[[nodiscard]] FoundCounts counts_of(const JudgedClass& judged);

// COCO's figures, the means of VOC and of Darknet, and a line for each class.
[[nodiscard]] std::string detection_table(const DetectionMetrics& metrics,
                                          const std::vector<std::string>& names);

// Adds "coco" (its twelve figures by its names; null where there is nothing to be found),
// "voc_11_points", "voc_all_points" and "classes".
void add_detection(nlohmann::ordered_json& json,
                   const DetectionMetrics& metrics,
                   const std::vector<std::string>& names);

}  // namespace tessera::engine
