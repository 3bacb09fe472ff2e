// Multi-scale training: the sizes that a detector's input takes in turn, by the rule of AlexeyAB's
// Darknet. A scale is drawn between 1 / factor and factor; each side times the scale is rounded to
// a multiple of a step, the next larger one: with a factor of 1.4, 416 becomes 320, 352, ... 608.

#pragma once

#include <string>
#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Of the input, in pixels.
struct InputSize {
  Index rows = 0;
  Index cols = 0;
  friend bool operator==(const InputSize&, const InputSize&) = default;
};

[[nodiscard]] inline InputSize size_of(const MapShape& image) {
  return {image.rows, image.cols};
}

// "416x320": rows, columns.
[[nodiscard]] std::string to_text(const InputSize& size);

inline constexpr double kLargestFactor = 10;

// There are no more sizes than this: plans are made for each before training.
inline constexpr Index kMostInputSizes = 100;

class InputSizes {
 public:
  // `factor` is above 1. Throws std::invalid_argument, with a message for the user, where there are
  // more sizes than kMostInputSizes.
  InputSizes(const InputSize& configured, double factor, Index step);

  [[nodiscard]] double factor() const { return factor_; }

  // For a scale from 1 / factor to factor.
  [[nodiscard]] const InputSize& at(double scale) const;

  // How often a size is drawn, where scales are uniform from 1 to the factor and every other one is
  // inverted.
  struct Share {
    InputSize size;
    double probability = 0;
  };
  // Each size once, the smallest first. The largest may have probability 0.
  [[nodiscard]] const std::vector<Share>& shares() const { return shares_; }
  [[nodiscard]] const InputSize& smallest() const { return shares_.front().size; }
  [[nodiscard]] const InputSize& largest() const { return shares_.back().size; }

 private:
  struct Span {
    double begin = 0;  // the first scale of this size
    InputSize size;
  };

  double factor_;
  std::vector<Span> spans_;  // the last one begins with the factor itself
  std::vector<Share> shares_;
};

// Pixels of the input to a cell of the network's coarsest map, along its longer side; maps that are
// a single cell whatever the input, such as those of an [avgpool], do not count.
[[nodiscard]] Index total_stride(const Network& network);

// The same network for another size of its input. Throws std::invalid_argument, with a message for
// the user, where a layer does not fit it.
[[nodiscard]] Network with_input(const Network& network, const InputSize& size);

// The same, of which all parameters stay those of `network`: else throws likewise.
[[nodiscard]] Network with_input_of_same_parameters(const Network& network, const InputSize& size);

}  // namespace tessera::partitioner
