// Whether what was measured of a device can be true, and of what use it is to plan with.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

// What the system says of a rank, beside what was measured.
struct DeviceLimits {
  std::string interface = {};  // by which the rank reaches the others
  std::optional<double> negotiated_bits_per_s = {};
  std::optional<Index> memory_bytes = {};  // that `ulimit` allows
  double throttled_share = 0;              // of the time in which it was measured
};

// A sentence, without the device's name, for each number that is impossible or no steady rate.
[[nodiscard]] std::vector<std::string> doubts(const partitioner::DeviceProfile& measured,
                                              const DeviceLimits& limits);

}  // namespace tessera::engine
