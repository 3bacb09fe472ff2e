#include "engine/train/metrics/detection_metrics.h"

#include <algorithm>
#include <limits>

#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

constexpr DetectionRules kAllBoxes{.least_score = kLeastTestedScore};

PixelBox pixels(const UnitBox& box, const partitioner::MapShape& image) {
  const auto across = static_cast<double>(image.cols);
  const auto down = static_cast<double>(image.rows);
  return {(box.x - box.width / 2) * across,
          (box.y - box.height / 2) * down,
          box.width * across,
          box.height * down};
}

Index confusion_bytes(Index classes) {
  const Index rows = classes + 1;
  return classes > kMostConfusedClasses ? 0 : rows * rows * static_cast<Index>(sizeof(Index));
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
         kept * static_cast<Index>(sizeof(JudgedBox)) + kept / classes * kCurveBytes +
         confusion_bytes(classes);
}

void DetectionMetrics::clear() {
  images_ = 0;
  judged_.assign(static_cast<std::size_t>(classes_), {});
  confusion_ = classes_ <= kMostConfusedClasses ? empty_confusion(classes_) : BoxConfusion{};
  shown_step_ = 1;
  shown_.clear();
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
    for (const TargetBox& object : targets[n]->boxes) {
      const PixelBox box =
          pixels({object.centre_x, object.centre_y, object.width, object.height}, image_);
      truth.push_back({0, object.label, box, box.width * box.height, object.ignored});
    }
    const std::vector<JudgedClass> judged = judge_boxes(truth, found, classes_);
    if (!confusion_.empty()) {
      add_boxes(confusion_, truth, found, judged, kConfidence);
    }
    append(judged_, judged);
    show({images_, std::move(truth), std::move(found)});
    ++images_;
  }
}

// With each image too many, every other one goes.
void DetectionMetrics::show(ShownImage image) {
  if (image.image % shown_step_ != 0) {
    return;
  }
  const auto is_low = [](const FoundBox& box) { return box.score < kConfidence; };
  std::erase_if(image.found, is_low);
  shown_.push_back(std::move(image));
  if (shown_.size() > kMostShown) {
    shown_step_ *= 2;
    std::erase_if(shown_, [&](const ShownImage& each) { return each.image % shown_step_ != 0; });
  }
}

void DetectionMetrics::merge(const Metric& other) {
  const auto& more = dynamic_cast<const DetectionMetrics&>(other);
  append(judged_, more.judged_);
  add(confusion_, more.confusion_);
  for (ShownImage image : more.shown_) {
    image.image += images_;
    show(std::move(image));
  }
  images_ += more.images_;
}

std::vector<MetricValue> DetectionMetrics::result() const {
  return {share("map50", plain_figures(judged_).darknet), share("map", coco_figures(judged_).ap)};
}

}  // namespace tessera::engine
