// Measures what this machine can compute, for the profile of a cluster. Convolutions and layers are
// timed with the operators that train, on maps that are larger than most caches.

#pragma once

#include <string>
#include <vector>

#include "engine/probe/probe_trials.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

struct DeviceProbeOptions {
  // Beside common_trials(); those that come last may be left out.
  std::vector<ConvolutionPoint> trials;
  double seconds = 20;
  Index memory_bytes = 0;  // that the probe may take
};

struct DeviceMeasurements {
  partitioner::DeviceProfile profile;      // name, memory, messages, updates: not measured here
  std::vector<ConvolutionPoint> left_out;  // for lack of time or memory
  double processor_share = 1;  // of a processor that a thread gets when it wants all of it
};

[[nodiscard]] DeviceMeasurements measure_device(const DeviceProbeOptions& options);

}  // namespace tessera::engine
