// What a link does, out of how long messages of some sizes took: seconds = latency + bytes / rate.

#pragma once

#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

struct TimedTransfer {
  double bytes = 0;
  double seconds = 0;
};

// The line with the least sum of squared errors over seconds: large messages settle the rate, small
// ones still count for the latency. Where that has no sense (a line that falls, or begins before
// 0), one through 0: the latency is then lost in the noise. Requires a transfer of more than 0
// bytes, and times above 0.
[[nodiscard]] partitioner::LinkProfile fit_link(const std::vector<TimedTransfer>& transfers);

}  // namespace tessera::engine
