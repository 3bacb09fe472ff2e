// What a training run offers to whoever chooses its partition by trials: to go on by another one,
// and to take some steps of the run and time them.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/monitor/device_sampler.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

// How long a run is.
struct RunSize {
  Index steps = 0;           // of all of it
  Index first_step = 0;      // that were done when it was resumed
  Index epoch_steps = 1;     // after which it is tested
  double testing_steps = 0;  // images to test with, by those of a step
};

struct MeasuredPower {
  bool known = false;
  double watts = 0;
  double relative_error = 0;
  bool estimated = false;
};

// Between two readings of a meter.
[[nodiscard]] inline MeasuredPower measured_power(const MeterReading::Meter& before,
                                                  const MeterReading::Meter& after) {
  const std::optional<double> watts = after.watts_since(before);
  return {watts.has_value(), watts.value_or(0), after.relative_error, after.estimated};
}

// What this rank measured. Seconds are those of steps that count: rank 0's are those of the run.
struct TrialMeasurement {
  std::vector<double> step_s;
  double computing = 0;   // the part of a step in which it did not wait for others
  MeasuredPower board;    // by the meter that this rank reads
  MeasuredPower cluster;  // of all boards together
};

struct TrialRuns {
  const Communicator& communicator;  // of all ranks
  RunSize size;
  bool metered = false;  // whether some power is measured
  // All ranks call these together; errors are AgreedErrors, and a signal Stopped, on all of them.
  // `predicted_s`: of a step, where that is known; rank 0's.
  std::function<void(const partitioner::Partition&, const std::optional<double>& predicted_s)>
      change_to;
  std::function<TrialMeasurement(Index steps)> take_steps;
  std::function<void(const char* name, const std::string& text)> write;  // into the run's folder
  std::function<void(const std::string& kind, const std::string& text)> tell;  // an event; rank 0's
};

}  // namespace tessera::engine
