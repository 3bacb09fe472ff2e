// How well a detector finds the objects on images: the boxes of each are judged beside those that
// are to be found, and only verdicts are kept. Sizes are in pixels of the network's input. Nothing
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

  // What it takes for so many images, at most, where no class has much more boxes than others.
  [[nodiscard]] static Index most_bytes(const partitioner::Network& network, Index images);

  void clear() override;
  void accumulate(const Outputs& outputs, const Targets& targets) override;
  // `other` is of the same network.
  void merge(const Metric& other) override;
  // "map50", Darknet's mean average precision at an overlap of 0.5, and "map", COCO's.
  [[nodiscard]] std::vector<MetricValue> result() const override;

  [[nodiscard]] Index classes() const { return classes_; }
  [[nodiscard]] const std::vector<JudgedClass>& judged() const { return judged_; }

 private:
  std::vector<HeadSite> sites_;
  partitioner::MapShape image_;
  Index classes_ = 0;
  std::vector<JudgedClass> judged_;  // by class
};

}  // namespace tessera::engine
