// Measures a cluster on all of its ranks at the same time, as they train: devices, links, memory
// and power, for its profile.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/power/open_meter.h"
#include "partitioner/cost/cluster_profile.h"

namespace tessera::engine {

struct ClusterProbe {
  std::vector<partitioner::ConvolutionPoint> trials;
  OpenedMeter meter;  // of this rank's machine
  double seconds = 40;
  // What a process takes without a network, once there are connections between all ranks.
  std::function<Index()> program_bytes;
  bool apart = false;  // describe devices that measure alike each by itself
};

// Numbers have four digits.
struct ProbedCluster {
  partitioner::ClusterProfile measured;   // each device by itself
  partitioner::ClusterProfile described;  // devices of one kind by common numbers
  std::vector<std::vector<int>> kinds;    // of which those are; none where devices stay apart
  std::vector<std::string> left_out;  // a sentence for each device, of what is missing or doubtful
};

// The same on all ranks, which call this together.
[[nodiscard]] ProbedCluster probe_cluster(const ClusterProbe& probe,
                                          const Communicator& communicator);

// The meter of this rank's machine, and why there is no better one. Throws AgreedError where
// `meters` are not of boards. All ranks call this together.
[[nodiscard]] OpenedMeter meter_of_rank(const std::vector<MeterSpec>& meters,
                                        const Communicator& communicator);

}  // namespace tessera::engine
