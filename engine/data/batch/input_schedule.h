// Which size the input of a network has in each step of multi-scale training. It follows from the
// run's seed and the number of the step alone: the same on any number of ranks, and in a run that
// goes on from a checkpoint.

#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "partitioner/network/input_sizes.h"

namespace tessera::engine {

class InputSchedule {
 public:
  // From step `largest_from` on, counted from 0, inputs are of the largest size.
  InputSchedule(partitioner::InputSizes sizes, std::uint64_t seed, Index largest_from = kNever)
      : sizes_(std::move(sizes)), seed_(seed), largest_from_(largest_from) {}

  [[nodiscard]] const partitioner::InputSizes& sizes() const { return sizes_; }

  // `step` is counted from 0. A size lasts for kStepsOfSize steps; the first is the largest, so
  // that what does not fit into memory fails at once.
  [[nodiscard]] const partitioner::InputSize& at(Index step) const;

  static constexpr Index kStepsOfSize = 10;
  static constexpr Index kNever = std::numeric_limits<Index>::max();

 private:
  partitioner::InputSizes sizes_;
  std::uint64_t seed_;
  Index largest_from_;
};

// The step from which on a training of so many steps has the largest input, as Darknet's last 100
// have, but no more than a tenth; 0 steps: never.
[[nodiscard]] Index largest_input_from(Index steps);

}  // namespace tessera::engine
