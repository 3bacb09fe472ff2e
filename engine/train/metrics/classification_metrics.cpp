#include "engine/train/metrics/classification_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

namespace tessera::engine {

namespace {

constexpr std::ptrdiff_t kTop = 5;

double share(Index part, Index whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(part) / static_cast<double>(whole);
}

// How many classes come before `label` when outputs are sorted, equal ones by their number.
std::ptrdiff_t place_of(std::span<const float> outputs, int label) {
  const auto at = outputs.begin() + label;
  const float value = *at;
  return std::count_if(outputs.begin(), at, [value](float other) { return other >= value; }) +
         std::count_if(at, outputs.end(), [value](float other) { return other > value; });
}

}  // namespace

double ClassScore::recall() const {
  return share(right, pictures);
}

double ClassScore::precision() const {
  return share(right, predicted);
}

ClassificationMetrics::ClassificationMetrics(int classes)
    : scores_(static_cast<std::size_t>(classes)) {}

void ClassificationMetrics::add(std::span<const float> outputs, int label) {
  expects(outputs.size() == scores_.size() && !outputs.empty() && label >= 0,
          "a picture has an output for each class, and a label");
  const auto predicted =
      static_cast<int>(std::max_element(outputs.begin(), outputs.end()) - outputs.begin());
  ++pictures_;
  ++scores_[static_cast<std::size_t>(predicted)].predicted;
  if (label >= classes()) {
    return;
  }
  ClassScore& score = scores_[static_cast<std::size_t>(label)];
  ++score.pictures;
  ++pairs_[{label, predicted}];
  if (std::isnan(outputs[static_cast<std::size_t>(label)])) {
    return;
  }
  in_top5_ += place_of(outputs, label) < kTop ? 1 : 0;
  if (predicted == label) {
    ++right_;
    ++score.right;
  }
}

void ClassificationMetrics::clear() {
  *this = ClassificationMetrics(classes());
}

void ClassificationMetrics::accumulate(const Outputs& outputs, const Targets& targets) {
  const std::size_t each = scores_.size();
  expects(outputs.size() == 1 && outputs[0].size() == each * targets.size(),
          "outputs for each image");
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (targets[n] && targets[n]->label) {
      add(std::span(outputs[0]).subspan(n * each, each), *targets[n]->label);
    }
  }
}

void ClassificationMetrics::merge(const Metric& other) {
  const auto* added = dynamic_cast<const ClassificationMetrics*>(&other);
  expects(added != nullptr && added->classes() == classes(), "metrics of the same classes");
  for (std::size_t i = 0; i < scores_.size(); ++i) {
    scores_[i].pictures += added->scores_[i].pictures;
    scores_[i].predicted += added->scores_[i].predicted;
    scores_[i].right += added->scores_[i].right;
  }
  for (const auto& [pair, pictures] : added->pairs_) {
    pairs_[pair] += pictures;
  }
  pictures_ += added->pictures_;
  right_ += added->right_;
  in_top5_ += added->in_top5_;
}

std::vector<MetricValue> ClassificationMetrics::result() const {
  std::vector<MetricValue> values{{.name = "accuracy", .value = accuracy()}};
  if (classes() > kTop) {
    values.push_back({.name = "top5", .value = top5()});
  }
  return values;
}

double ClassificationMetrics::accuracy() const {
  return share(right_, pictures_);
}

double ClassificationMetrics::top5() const {
  return share(in_top5_, pictures_);
}

Index ClassificationMetrics::confusion(int label, int predicted) const {
  const auto found = pairs_.find({label, predicted});
  return found == pairs_.end() ? 0 : found->second;
}

ClassificationMetrics class_metric(const partitioner::Network& network) {
  return ClassificationMetrics(static_cast<int>(network.shape(output_layer(network)).volume()));
}

std::vector<Confusion> ClassificationMetrics::confusions() const {
  std::vector<Confusion> found;
  for (const auto& [pair, pictures] : pairs_) {
    if (pair.first != pair.second) {
      found.push_back({pair.first, pair.second, pictures});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Confusion& a, const Confusion& b) {
    return a.pictures > b.pictures;
  });
  return found;
}

}  // namespace tessera::engine
