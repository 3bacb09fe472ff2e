// The devices that are planned for where nobody has described any: each a Raspberry Pi 3, by the
// profile that hostfiles/pi3x*.cluster.toml have of it.

#pragma once

#include "partitioner/cost/cluster_profile.h"

namespace tessera::partitioner {

[[nodiscard]] ClusterProfile assumed_devices(int count);

}  // namespace tessera::partitioner
