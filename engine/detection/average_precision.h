// Average precision of boxes that were judged. Three programs have three numbers of that name:
// COCO's takes precision at 101 recalls, over ten thresholds of IoU, from at most 100 boxes an
// image, and has the sizes of objects; VOC's is at one IoU, 0.5, measured on whole pixels, from 11
// recalls (up to 2009) or from all; Darknet's is the latter, with IoUs of plain areas.

#pragma once

#include <array>
#include <optional>
#include <vector>

#include "engine/detection/judged_boxes.h"

namespace tessera::engine {

// Scratch bytes per box while the figures of a class are computed.
inline constexpr Index kCurveBytes = sizeof(const JudgedBox*) + 2 * sizeof(double);

// Nothing where there is nothing to be found.
struct CocoFigures {
  std::optional<double> ap;  // the mean over thresholds and classes
  std::optional<double> ap_at_50;
  std::optional<double> ap_at_75;
  std::optional<double> ap_small;
  std::optional<double> ap_medium;
  std::optional<double> ap_large;
  std::optional<double> recall_1;  // with at most so many boxes an image
  std::optional<double> recall_10;
  std::optional<double> recall_100;
  std::optional<double> recall_small;
  std::optional<double> recall_medium;
  std::optional<double> recall_large;
  std::vector<std::optional<double>> ap_of_classes;
  std::array<std::optional<double>, kCocoThresholds> ap_at_thresholds;
};

// The twelve, by COCO's names.
struct NamedCocoFigure {
  const char* name;
  std::optional<double> CocoFigures::*value;
  const char* meaning;
};

inline constexpr std::array<NamedCocoFigure, 12> kCocoFigures{
    {{"AP", &CocoFigures::ap, "mean over overlaps of 0.50 to 0.95"},
     {"AP50", &CocoFigures::ap_at_50, "at an overlap of 0.50"},
     {"AP75", &CocoFigures::ap_at_75, "at an overlap of 0.75"},
     {"APs", &CocoFigures::ap_small, "objects of less than 32 x 32 pixels"},
     {"APm", &CocoFigures::ap_medium, "up to 96 x 96"},
     {"APl", &CocoFigures::ap_large, "larger ones"},
     {"AR1", &CocoFigures::recall_1, "recall with the best box of each image and class"},
     {"AR10", &CocoFigures::recall_10, "with the best 10"},
     {"AR100", &CocoFigures::recall_100, "with the best 100"},
     {"ARs", &CocoFigures::recall_small, "likewise, of small objects"},
     {"ARm", &CocoFigures::recall_medium, "of medium ones"},
     {"ARl", &CocoFigures::recall_large, "of large ones"}}};

[[nodiscard]] CocoFigures coco_figures(const std::vector<JudgedClass>& judged);

// Means over classes that have boxes to be found.
struct PlainFigures {
  std::optional<double> voc_11_points;
  std::optional<double> voc_all_points;
  std::optional<double> darknet;
  std::vector<std::optional<double>> darknet_of_classes;
};

[[nodiscard]] PlainFigures plain_figures(const std::vector<JudgedClass>& judged);

}  // namespace tessera::engine
