// Keeps what is read of a run within a fixed amount of memory, however long its files are: where
// there are too many records of a kind, each comes to stand for twice as many lines. What is made
// of records stays right but for detail: sums and means over steps, timings and power are those of
// all lines. Of events those that come every epoch are dropped first, and then the oldest.

#pragma once

#include <cstddef>

#include "engine/run_view/run_data.h"

namespace tessera::engine {

// The most records of a kind; these take about 300 MB together.
struct RunLimits {
  std::size_t steps = std::size_t{1} << 18U;
  std::size_t evaluations = std::size_t{1} << 16U;
  std::size_t samples = std::size_t{1} << 19U;  // of all devices
  std::size_t events = std::size_t{1} << 15U;
  std::size_t timings = std::size_t{1} << 18U;
};

// To be called after each record that is added; cheap as long as nothing is too much.
void keep_within(const RunLimits& limits, RunData& data);

// Adds a sample to a device of the data.
void add_sample(RunData& data, RunDevice& device, const DeviceSample& sample);

}  // namespace tessera::engine
