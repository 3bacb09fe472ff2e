// What ranks add up to a loss: sums, and, for each loss that is a mean over what was found rather
// than over images, what that mean is made of.

#pragma once

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

  void add(const LossSum& more) {
    sum += more.sum;
    if (means.size() < more.means.size()) {
      means.resize(more.means.size());
    }
    for (std::size_t i = 0; i < more.means.size(); ++i) {
      means[i].sum += more.means[i].sum;
      means[i].count += more.means[i].count;
    }
  }
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
