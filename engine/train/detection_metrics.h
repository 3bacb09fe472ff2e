// How well a detector finds the objects on images: its boxes are kept with those that are to be
// found, and judged when they are asked about. Sizes are in pixels of the network's input. Nothing
// here talks to other ranks; rank 0 has the gathered outputs.

#pragma once

#include <optional>
#include <vector>

#include "engine/detection/average_precision.h"
#include "engine/detection/detections.h"
#include "engine/train/metric.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

class DetectionMetrics : public Metric {
 public:
  // Of a detector: what its heads say.
  explicit DetectionMetrics(const partitioner::Network& network);

  void clear() override;
  void accumulate(const Outputs& outputs, const Targets& targets) override;
  // `other` is of the same network.
  void merge(const Metric& other) override;
  // "map50", Darknet's mean average precision at an overlap of 0.5, and "map", COCO's.
  [[nodiscard]] std::vector<MetricValue> result() const override;

  [[nodiscard]] Index classes() const { return classes_; }
  [[nodiscard]] Index images() const { return images_; }
  [[nodiscard]] const std::vector<TrueBox>& truth() const { return truth_; }
  [[nodiscard]] const std::vector<FoundBox>& found() const { return found_; }
  // Judged when they are first asked for.
  [[nodiscard]] const std::vector<JudgedClass>& judged() const;

 private:
  std::vector<HeadSite> sites_;
  partitioner::MapShape image_;
  Index classes_ = 0;
  Index images_ = 0;
  std::vector<TrueBox> truth_;
  std::vector<FoundBox> found_;
  mutable std::optional<std::vector<JudgedClass>> judged_;  // nothing: they have changed since
};

}  // namespace tessera::engine
