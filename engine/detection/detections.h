// From the outputs of heads to boxes, each with a class and a score: detections above a score,
// after non-maximum suppression.

#pragma once

#include <span>
#include <vector>

#include "engine/detection/boxes.h"
#include "engine/detection/head.h"

namespace tessera::engine {

struct Detection {
  UnitBox box;  // fractions of the network's input
  int label = 0;
  double score = 0;  // objectness times the share of the class
  friend bool operator==(const Detection&, const Detection&) = default;
};

struct DetectionRules {
  double least_score = 0.25;
  // Non-maximum suppression: boxes of one class whose IoU with one of a higher score is above this
  // are left out.
  double nms_threshold = 0.45;
  std::size_t most = 300;  // of an image, those of the highest scores
};

// Adds all boxes of one image that reach the score, by anchor, cell and class. `output` is (C, H,
// W) of the head's map.
void add_boxes_of_head(const HeadSite& site,
                       std::span<const float> output,
                       double least_score,
                       std::vector<Detection>& found);

// How many these are at most.
[[nodiscard]] Index most_detections(const HeadSite& site);

// The boxes of all heads of one image, by falling score. `outputs` are (C, H, W), in the order of
// `sites`.
[[nodiscard]] std::vector<Detection> detections(const std::vector<HeadSite>& sites,
                                                const std::vector<std::span<const float>>& outputs,
                                                const DetectionRules& rules);

}  // namespace tessera::engine
