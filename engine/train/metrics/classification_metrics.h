// How well a network distinguishes classes: counted picture by picture from its outputs, then asked
// for shares. Nothing here talks to other ranks; rank 0 has the gathered outputs and counts.
//
// The predicted class is the first of the largest outputs. An output that is NaN is never right.

#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/train/metrics/metric.h"
#include "partitioner/network/network.h"

namespace tessera::engine {

// A class taken for another one.
struct Confusion {
  int label = 0;
  int predicted = 0;
  Index pictures = 0;
  friend bool operator==(const Confusion&, const Confusion&) = default;
};

// What is known of one class. A share of nothing is NaN: the recall of a class without pictures,
// the precision of one that was never predicted.
struct ClassScore {
  Index pictures = 0;   // that are of this class
  Index predicted = 0;  // that were taken for it
  Index right = 0;      // both
  [[nodiscard]] double recall() const;
  [[nodiscard]] double precision() const;
};

class ClassificationMetrics : public Metric {
 public:
  explicit ClassificationMetrics(int classes = 0);

  void clear() override;
  // Images whose class is unknown do not count.
  void accumulate(const Outputs& outputs, const Targets& targets) override;
  // `other` has as many classes.
  void merge(const Metric& other) override;
  // "accuracy", and "top5" where there are more than five classes.
  [[nodiscard]] std::vector<MetricValue> result() const override;

  // One picture: an output for each class, and its label, at least 0. A label that the network has
  // no output for is counted as a mistake.
  void add(std::span<const float> outputs, int label);

  [[nodiscard]] int classes() const { return static_cast<int>(scores_.size()); }
  [[nodiscard]] Index pictures() const { return pictures_; }
  [[nodiscard]] Index right() const { return right_; }
  [[nodiscard]] double accuracy() const;
  // The share of pictures whose label is among the five largest outputs.
  [[nodiscard]] double top5() const;
  [[nodiscard]] const ClassScore& score(int of_class) const {
    return scores_[static_cast<std::size_t>(of_class)];
  }
  // Pictures of class `label` that were taken for class `predicted`.
  [[nodiscard]] Index confusion(int label, int predicted) const;
  // The pairs of different classes that were confused, the most frequent first; of pairs that are
  // as frequent the lower label.
  [[nodiscard]] std::vector<Confusion> confusions() const;

 private:
  std::vector<ClassScore> scores_;
  std::map<std::pair<int, int>, Index> pairs_;  // label and predicted class: few of many classes
  Index pictures_ = 0;
  Index right_ = 0;
  Index in_top5_ = 0;
};

// For as many classes as the network has outputs.
[[nodiscard]] ClassificationMetrics class_metric(const partitioner::Network& network);

}  // namespace tessera::engine
