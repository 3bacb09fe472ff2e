#include "engine/train/detection_metrics.h"

#include <algorithm>
#include <limits>

#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

// Boxes of low scores are part of the curve of precision and recall: Darknet takes all from this
// on.
constexpr DetectionRules kAllBoxes{.least_score = 0.005};

PixelBox pixels(const UnitBox& box, const partitioner::MapShape& image) {
  const auto across = static_cast<double>(image.cols);
  const auto down = static_cast<double>(image.rows);
  return {(box.x - box.width / 2) * across,
          (box.y - box.height / 2) * down,
          box.width * across,
          box.height * down};
}

MetricValue share(const char* name, const std::optional<double>& value) {
  return {.name = name, .value = value.value_or(std::numeric_limits<double>::quiet_NaN())};
}

}  // namespace

DetectionMetrics::DetectionMetrics(const partitioner::Network& network) : image_(network.image) {
  for (const int head : output_layers(network)) {
    sites_.push_back(head_site(network, head));
    classes_ = std::max(classes_, classes_of(network, head));
  }
  DetectionMetrics::clear();
}

Index DetectionMetrics::most_bytes(const partitioner::Network& network, Index images) {
  Index of_image = 0;  // before those that say the same are left out
  Index classes = 1;
  for (const int head : output_layers(network)) {
    of_image += most_detections(head_site(network, head));
    classes = std::max(classes, classes_of(network, head));
  }
  const Index kept = images * std::min(of_image, static_cast<Index>(kAllBoxes.most));
  // Those of an image are twice there while their list grows.
  return 2 * of_image * static_cast<Index>(sizeof(Detection)) +
         kept * static_cast<Index>(sizeof(JudgedBox)) + kept / classes * kCurveBytes;
}

void DetectionMetrics::clear() {
  judged_.assign(static_cast<std::size_t>(classes_), {});
}

void DetectionMetrics::accumulate(const Outputs& outputs, const Targets& targets) {
  expects(outputs.size() == sites_.size(), "there are outputs of each head");
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (!targets[n]) {
      continue;
    }
    std::vector<std::span<const float>> of_image;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const auto size = static_cast<std::size_t>(sites_[i].map.volume());
      of_image.push_back(std::span(outputs[i]).subspan(n * size, size));
    }
    std::vector<FoundBox> found;
    for (const Detection& each : detections(sites_, of_image, kAllBoxes)) {
      found.push_back({0, each.label, pixels(each.box, image_), each.score});
    }
    std::vector<TrueBox> truth;
    for (const Box& object : targets[n]->boxes) {
      const PixelBox box =
          pixels({object.centre_x, object.centre_y, object.width, object.height}, image_);
      truth.push_back({0, object.label, box, box.width * box.height});
    }
    append(judged_, judge_boxes(truth, found, classes_));
  }
}

void DetectionMetrics::merge(const Metric& other) {
  append(judged_, dynamic_cast<const DetectionMetrics&>(other).judged_);
}

std::vector<MetricValue> DetectionMetrics::result() const {
  return {share("map50", plain_figures(judged_).darknet), share("map", coco_figures(judged_).ap)};
}

}  // namespace tessera::engine
