// What reports call the devices of a cluster.

#pragma once

#include <string>
#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::partitioner {

// By device.
[[nodiscard]] std::vector<std::string> device_names(const ClusterProfile& cluster);

// "pi1, pi3": of the names of all devices those with these numbers.
[[nodiscard]] std::string listed_devices(const std::vector<std::string>& names,
                                         const std::vector<int>& devices);

}  // namespace tessera::partitioner
