// Measures the electric power that this machine takes, for the profile of a cluster: while it does
// nothing, computes as training does with 1 to all threads, sends and receives.

#pragma once

#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/power/power_meter.h"
#include "partitioner/cost/power_profile.h"

namespace tessera::engine {

struct PowerMeasurement {
  std::optional<partitioner::PowerProfile> power;  // nothing: it could not be measured
  std::string problem;                             // why not; empty where there is no meter
};

// Takes about `seconds`, or six of the slowest meter's periods for each number of threads and for
// each direction. A rank without a meter does as the others do. What is estimated is not measured,
// and nothing of sending and receiving is known of it; where no rank has more, this takes no time.
// A thread counts as a core. All ranks call this together.
[[nodiscard]] PowerMeasurement measure_power(const std::optional<PowerMeter>& meter,
                                             double seconds,
                                             const Communicator& communicator);

}  // namespace tessera::engine
