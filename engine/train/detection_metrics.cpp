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
}

void DetectionMetrics::clear() {
  judged_.reset();
  images_ = 0;
  truth_.clear();
  found_.clear();
}

void DetectionMetrics::accumulate(const Outputs& outputs, const Targets& targets) {
  expects(outputs.size() == sites_.size(), "there are outputs of each head");
  judged_.reset();
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (!targets[n]) {
      continue;
    }
    std::vector<std::span<const float>> of_image;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const auto size = static_cast<std::size_t>(sites_[i].map.volume());
      of_image.push_back(std::span(outputs[i]).subspan(n * size, size));
    }
    for (const Detection& each : detections(sites_, of_image, kAllBoxes)) {
      found_.push_back({images_, each.label, pixels(each.box, image_), each.score});
    }
    for (const Box& object : targets[n]->boxes) {
      const PixelBox box =
          pixels({object.centre_x, object.centre_y, object.width, object.height}, image_);
      truth_.push_back({images_, object.label, box, box.width * box.height});
    }
    ++images_;
  }
}

void DetectionMetrics::merge(const Metric& other) {
  const auto& more = dynamic_cast<const DetectionMetrics&>(other);
  judged_.reset();
  for (TrueBox box : more.truth_) {
    box.image += images_;
    truth_.push_back(box);
  }
  for (FoundBox box : more.found_) {
    box.image += images_;
    found_.push_back(box);
  }
  images_ += more.images_;
}

const std::vector<JudgedClass>& DetectionMetrics::judged() const {
  if (!judged_) {
    judged_ = judge_boxes(truth_, found_, classes_);
  }
  return *judged_;
}

std::vector<MetricValue> DetectionMetrics::result() const {
  return {share("map50", plain_figures(judged()).darknet), share("map", coco_figures(judged()).ap)};
}

}  // namespace tessera::engine
