// What ranks add up to a loss: sums over images; for each loss that is a mean over what was found
// in a pass, what that mean is made of; and what is divided by the cells of a step that have got
// an object.

#pragma once

#include <algorithm>
#include <vector>

namespace tessera::engine {

struct LossMean {
  double sum = 0;
  double count = 0;
  friend bool operator==(const LossMean&, const LossMean&) = default;
};

struct LossSum {
  double sum = 0;
  std::vector<LossMean> means = {};  // by loss of the network; none: all 0
  LossMean by_objects = {};          // of all heads that objects are assigned to

  // What a sum over so many cells is divided by.
  [[nodiscard]] static double divisor(double cells) { return std::max(cells, 1.0); }

  void add(const LossSum& more) {
    sum += more.sum;
    if (means.size() < more.means.size()) {
      means.resize(more.means.size());
    }
    for (std::size_t i = 0; i < more.means.size(); ++i) {
      means[i].sum += more.means[i].sum;
      means[i].count += more.means[i].count;
    }
    by_objects.sum += more.by_objects.sum;
    by_objects.count += more.by_objects.count;
  }
  // The loss where each image counts `of_image`: one over their number for a mean.
  [[nodiscard]] double mean(double of_image) const { return total() * of_image + object_mean(); }
  // A sum over images that has that mean. Without objects it is total(), bit for bit.
  [[nodiscard]] double sum_over(double images) const { return total() + object_mean() * images; }
  [[nodiscard]] double object_mean() const { return by_objects.sum / divisor(by_objects.count); }
  // Without what is divided by objects.
  [[nodiscard]] double total() const {
    double total = sum;
    for (const LossMean& mean : means) {
      total += mean.count > 0 ? mean.sum / mean.count : 0;
    }
    return total;
  }
  friend bool operator==(const LossSum&, const LossSum&) = default;
};

}  // namespace tessera::engine
