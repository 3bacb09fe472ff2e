// How well a detector finds the objects on images: the boxes of each are judged beside those that
// are to be found, and only what matched is kept, and the boxes of some to be shown. Sizes are in
// pixels of the network's input. Nothing here talks to other ranks; rank 0 has the gathered
// outputs.

#pragma once

#include <optional>
#include <vector>

#include "engine/detection/average_precision.h"
#include "engine/detection/box_confusion.h"
#include "engine/detection/detections.h"
#include "engine/train/metrics/metric.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// The confidence from which a detection counts, as in Darknet: in precision, recall and F1, and in
// confusion.
inline constexpr double kConfidence = 0.25;

// Boxes of low scores are part of the curve of precision and recall: Darknet takes all from this
// on.
inline constexpr double kLeastTestedScore = 0.005;

inline constexpr Index kMostConfusedClasses = 1000;  // counts of more would take megabytes
inline constexpr std::size_t kMostShown = 8;

struct ShownImage {
  Index image = 0;  // of those that were tested, from 0
  std::vector<TrueBox> truth;
  std::vector<FoundBox> found;  // with a score of kConfidence or more
};

class DetectionMetrics : public Metric {
 public:
  // Of a detector: what its heads say.
  explicit DetectionMetrics(const partitioner::Network& network);

  // What it takes for so many images, at most, where no class has much more boxes than others.
  [[nodiscard]] static Index most_bytes(const partitioner::Network& network, Index images);

  void clear() override;
  void accumulate(const Outputs& outputs, const Targets& targets) override;
  // `other` is of the same network.
  void merge(const Metric& other) override;
  // "map50", Darknet's mean average precision at an IoU of 0.5, and "map", COCO's.
  [[nodiscard]] std::vector<MetricValue> result() const override;

  [[nodiscard]] Index classes() const { return classes_; }
  // Of all images together.
  [[nodiscard]] const std::vector<JudgedClass>& judged() const { return judged_; }
  // Of boxes with a score of kConfidence or more; empty with more than kMostConfusedClasses.
  [[nodiscard]] const BoxConfusion& confusion() const { return confusion_; }
  // Some images, evenly from the first on: at most kMostShown, at least half as many where there
  // are so many.
  [[nodiscard]] const std::vector<ShownImage>& shown() const { return shown_; }

 private:
  void show(ShownImage image);

  std::vector<HeadSite> sites_;
  partitioner::MapShape image_;
  Index classes_ = 0;
  Index images_ = 0;
  std::vector<JudgedClass> judged_;  // by class
  BoxConfusion confusion_;
  Index shown_step_ = 1;  // from one image that is shown to the next
  std::vector<ShownImage> shown_;
};

}  // namespace tessera::engine
