#include "partitioner/search/set_posterior.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

// |S and T have in common| / sqrt(|S| |T|)
double shared_devices(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both.empty() ? 0
                      : static_cast<double>(both.size()) /
                            std::sqrt(static_cast<double>(a.size() * b.size()));
}

// The mean and variance of a mixture: of the means, and within each.
class Mixture {
 public:
  void add(double weight, double mean, double variance) {
    mean_ += weight * mean;
    square_ += weight * (mean * mean + variance);
  }
  [[nodiscard]] LogEstimate estimate() const {
    return {mean_, std::max(0.0, square_ - mean_ * mean_)};
  }

 private:
  double mean_ = 0;
  double square_ = 0;
};

}  // namespace

SetPosterior::SetPosterior(const std::vector<std::vector<int>>& sets,
                           std::vector<double> predicted,
                           const PosteriorOptions& options)
    : predicted_(std::move(predicted)) {
  expects(sets.size() == predicted_.size(), "a prediction for each set");
  expects(options.times.size() == options.weights.size(), "a weight for each point of the grid");
  const std::size_t count = sets.size();
  std::vector<double> shared(count * count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      shared[a * count + b] = shared_devices(sets[a], sets[b]) + (a == b ? 1 : 0);
    }
  }
  const double common = options.common * options.common;
  for (std::size_t i = 0; i < options.times.size(); ++i) {
    const double error = options.error * options.times[i];
    std::vector<double> covariance(count * count);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        const bool several = sets[a].size() > 1 && sets[b].size() > 1;
        covariance[a * count + b] =
            common + error * error * ((several ? 1 : 0) + shared[a * count + b] / 2);
      }
    }
    for (std::size_t j = 0; j < options.times.size(); ++j) {
      hypotheses_.push_back({.noise = options.noise * options.times[j],
                             .log_weight = std::log(options.weights[i] * options.weights[j]),
                             .mean = std::vector<double>(count),
                             .covariance = covariance});
    }
  }
  weigh();
}

void SetPosterior::weigh() {
  double most = hypotheses_.front().log_weight;
  for (const Hypothesis& each : hypotheses_) {
    most = std::max(most, each.log_weight);
  }
  double sum = 0;
  for (Hypothesis& each : hypotheses_) {
    each.log_weight -= most;
    each.weight = std::exp(each.log_weight);
    sum += each.weight;
  }
  for (Hypothesis& each : hypotheses_) {
    each.weight /= sum;
  }
}

void SetPosterior::observe(std::size_t set, double value, double own_error) {
  const std::size_t count = predicted_.size();
  const double x = value - predicted_[set];
  for (Hypothesis& each : hypotheses_) {
    const double variance =
        covariance(each, set, set) + each.noise * each.noise + own_error * own_error;
    const double off = x - each.mean[set];
    each.log_weight -= (off * off / variance + std::log(variance)) / 2;
    std::vector<double> row(count);
    for (std::size_t other = 0; other < count; ++other) {
      row[other] = covariance(each, set, other);
    }
    for (std::size_t a = 0; a < count; ++a) {
      const double gain = row[a] / variance;
      each.mean[a] += gain * off;
      for (std::size_t b = 0; b < count; ++b) {
        each.covariance[a * count + b] -= gain * row[b];
      }
    }
  }
  weigh();
}

LogEstimate SetPosterior::of(std::size_t set) const {
  Mixture mixture;
  for (const Hypothesis& each : hypotheses_) {
    mixture.add(each.weight, each.mean[set], covariance(each, set, set));
  }
  LogEstimate estimate = mixture.estimate();
  estimate.mean += predicted_[set];
  return estimate;
}

LogEstimate SetPosterior::ratio(const Hypothesis& of, std::size_t a, std::size_t b) const {
  return {of.mean[a] - of.mean[b] + predicted_[a] - predicted_[b],
          std::max(0.0, covariance(of, a, a) + covariance(of, b, b) - 2 * covariance(of, a, b))};
}

LogEstimate SetPosterior::ratio(std::size_t set, std::size_t other) const {
  Mixture mixture;
  for (const Hypothesis& each : hypotheses_) {
    const LogEstimate of = ratio(each, set, other);
    mixture.add(each.weight, of.mean, of.variance);
  }
  return mixture.estimate();
}

std::vector<WeightedEstimate> SetPosterior::ratios(std::size_t set, std::size_t other) const {
  constexpr double kLeastWeight = 1e-4;
  std::vector<WeightedEstimate> all;
  for (const Hypothesis& each : hypotheses_) {
    if (each.weight >= kLeastWeight) {
      all.push_back({each.weight, ratio(each, set, other)});
    }
  }
  return all;
}

double SetPosterior::learnt(std::size_t set, std::size_t other, std::size_t tried) const {
  double sum = 0;
  for (const Hypothesis& each : hypotheses_) {
    const double shared = covariance(each, set, tried) - covariance(each, other, tried);
    sum +=
        each.weight * shared * shared / (covariance(each, tried, tried) + each.noise * each.noise);
  }
  return sum;
}

}  // namespace tessera::partitioner
