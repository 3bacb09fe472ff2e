// Batch normalisation of a map over all of its cells, each rule by the formulas of its own program,
// step by step.

#pragma once

#include <cmath>
#include <vector>

#include "tests/support/naive.h"

#include "partitioner/network/norm_rule.h"

namespace tessera::tests {

// By channel, and by cell.
struct NaiveNorm {
  std::vector<double> scale_gradient;
  std::vector<double> shift_gradient;
  std::vector<double> running_variance;  // what the running one takes in
  PlainMap out;
  PlainMap in_gradient;
};

namespace naive {

template <class Value>
double channel_sum(const Region& map, Index channel, Value value) {
  Region cells = map;
  cells.channels = {channel, channel + 1};
  double sum = 0;
  for_each_cell(cells,
                [&](Index n, Index c, Index row, Index col) { sum += value(n, c, row, col); });
  return sum;
}

// Ioffe and Szegedy 2015, with PyTorch's epsilon: each step's derivative after the other.
struct PyTorch {
  double epsilon = 0;

  [[nodiscard]] double variance(double squares, double count) const { return squares / count; }
  [[nodiscard]] double divisor(double variance) const { return std::sqrt(variance + epsilon); }
  [[nodiscard]] double back_divisor(double variance) const { return std::sqrt(variance + epsilon); }
};

struct Darknet {
  [[nodiscard]] static double variance(double squares, double count) {
    return squares / (count - 1);
  }
  [[nodiscard]] static double divisor(double variance) {
    return std::sqrt(variance) + double{.000001F};
  }
  [[nodiscard]] static double back_divisor(double variance) {
    return std::sqrt(variance + double{.00001F});
  }
};

template <class Rule>
NaiveNorm normalize(const Rule& rule,
                    PlainMap& in,
                    PlainMap& gradient,
                    const std::vector<double>& scale,
                    const std::vector<double>& shift) {
  NaiveNorm result{{}, {}, {}, PlainMap(in.region), PlainMap(in.region)};
  const double count = static_cast<double>(in.region.volume() / in.region.channels.size());
  for (Index channel = 0; channel < in.region.channels.end; ++channel) {
    const auto at = static_cast<std::size_t>(channel);
    const auto sum = [&](auto value) { return channel_sum(in.region, channel, value); };
    const double mean = sum([&](auto... cell) { return in.at(cell...); }) / count;
    const double squares = sum([&](auto... cell) { return std::pow(in.at(cell...) - mean, 2); });
    const double variance = rule.variance(squares, count);
    const auto normal = [&](auto... cell) {
      return (in.at(cell...) - mean) / rule.divisor(variance);
    };
    result.running_variance.push_back(squares / (count - 1));
    result.shift_gradient.push_back(sum([&](auto... cell) { return gradient.at(cell...); }));
    result.scale_gradient.push_back(
        sum([&](auto... cell) { return gradient.at(cell...) * normal(cell...); }));
    // Of the normalised cells, of the mean and of the variance.
    const auto delta = [&](auto... cell) { return gradient.at(cell...) * scale[at]; };
    const double back = rule.back_divisor(variance);
    const double mean_delta = -sum([&](auto... cell) { return delta(cell...); }) / back;
    const double variance_delta =
        sum([&](auto... cell) { return delta(cell...) * (in.at(cell...) - mean); }) * -0.5 /
        std::pow(back, 3);
    (void)sum([&](auto... cell) {
      result.out.at(cell...) = normal(cell...) * scale[at] + shift[at];
      result.in_gradient.at(cell...) = delta(cell...) / back +
                                       variance_delta * 2 * (in.at(cell...) - mean) / count +
                                       mean_delta / count;
      return 0.0;
    });
  }
  return result;
}

}  // namespace naive

// With all cells of the map as the batch, which has more than one per channel. No activation.
[[nodiscard]] inline NaiveNorm naive_norm(const partitioner::NormRule& rule,
                                          PlainMap& in,
                                          PlainMap& gradient,
                                          const std::vector<double>& scale,
                                          const std::vector<double>& shift) {
  return rule.form == partitioner::NormForm::Darknet
             ? naive::normalize(naive::Darknet{}, in, gradient, scale, shift)
             : naive::normalize(naive::PyTorch{rule.epsilon}, in, gradient, scale, shift);
}

}  // namespace tessera::tests
