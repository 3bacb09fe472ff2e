// What is known of one quantity of each set of devices, its step time or its power, after some of
// the sets have been tried.
//
// Let p(S) be the quantity as predicted for set S, and t(S) as it is. Predictions are off by
//
//   y(S) = log t(S) / p(S) = c + m [S has several devices] + (sum of d(i), i in S) / sqrt |S| +
//   e(S)
//
// where c is common to all sets, m to those that exchange messages, d(i) belongs to device i, whose
// profile is too good or too bad, and e(S) to the set alone. (Divided by |S| the errors of many
// devices would average out, but all wait for the one that is slower than its profile.) All four
// are normal with mean 0 and standard deviations `common`, `error`, `error / sqrt 2` and
// `error / sqrt 2`. So y is jointly normal with covariance
//
//   K(S, T) = common^2 + error^2 [S and T have several devices each]
//             + error^2 / 2 * |S and T have in common| / sqrt(|S| |T|) + error^2 / 2 [S = T]
//
// A trial of S shows x = y(S) + n, with a variance r = noise^2 + own^2 of n: `noise` is the same
// for all trials, and `own` what the trial itself says that it may be off. The observation changes
// the mean a and the covariance K of y as that of a Kalman filter does:
//
//   v = K(S, S) + r,  g = K(., S) / v:   a <- a + g (x - a(S)),   K <- K - g K(S, .)
//
// How large `error` and `noise` are nobody knows beforehand. Each pair of a small grid around what
// is usual is a hypothesis with its own a and K, and a trial multiplies its weight by the density
// that it gave the observation, exp(-(x - a(S))^2 / 2v) / sqrt(v). What is known is the mixture of
// them all.

#pragma once

#include <cstddef>
#include <vector>

namespace tessera::partitioner {

// A quantity in logarithms.
struct LogEstimate {
  double mean = 0;
  double variance = 0;
};

struct WeightedEstimate {
  double weight = 0;
  LogEstimate estimate;
};

struct PosteriorOptions {
  double common = 0.3;
  double error = 0.1;   // the middle of the grid
  double noise = 0.04;  // likewise
  // The grid is the middle times these, and each with its weight. {1}: no doubt about it.
  std::vector<double> times = {0.25, 0.5, 1, 2, 4};
  std::vector<double> weights = {0.1, 0.2, 0.3, 0.25, 0.15};
};

class SetPosterior {
 public:
  // The devices of each set, in rising order; and the logarithm of what is predicted for it.
  SetPosterior(const std::vector<std::vector<int>>& sets,
               std::vector<double> predicted,
               const PosteriorOptions& options);

  // A trial of the set showed this logarithm, which may be off by `own_error` without the noise
  // that all trials have.
  void observe(std::size_t set, double value, double own_error);

  // Mean and variance of the mixture.
  [[nodiscard]] LogEstimate of(std::size_t set) const;
  // Of the first over the second; and by each hypothesis that may still be true.
  [[nodiscard]] LogEstimate ratio(std::size_t set, std::size_t other) const;
  [[nodiscard]] std::vector<WeightedEstimate> ratios(std::size_t set, std::size_t other) const;
  // By how much a trial of `tried` would lower the variance of that ratio.
  [[nodiscard]] double learnt(std::size_t set, std::size_t other, std::size_t tried) const;

 private:
  struct Hypothesis {
    double noise = 0;
    double log_weight = 0;
    double weight = 0;               // of all of them: 1
    std::vector<double> mean;        // [set]
    std::vector<double> covariance;  // [set][set]
  };
  [[nodiscard]] double covariance(const Hypothesis& of, std::size_t a, std::size_t b) const {
    return of.covariance[a * predicted_.size() + b];
  }
  [[nodiscard]] LogEstimate ratio(const Hypothesis& of, std::size_t a, std::size_t b) const;
  void weigh();

  std::vector<double> predicted_;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace tessera::partitioner
