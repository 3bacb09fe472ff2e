#include "partitioner/cost/assumed_devices.h"

#include <string>

#include "partitioner/base/errors.h"
#include "partitioner/cost/assumed_profile.h"  // generated: the file as a text

namespace tessera::partitioner {

ClusterProfile assumed_devices(int count) {
  expects(count > 0, "a cluster has a device");
  ClusterProfile cluster = parse_cluster_profile(kAssumedProfile, "hostfiles/pi3x2.cluster.toml");
  DeviceProfile device = cluster.device(0);
  cluster.devices.clear();
  for (int i = 0; i < count; ++i) {
    device.name = "device" + std::to_string(i);
    cluster.devices.push_back(device);
  }
  return cluster;
}

}  // namespace tessera::partitioner
