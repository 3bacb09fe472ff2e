#include "partitioner/text/device_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::partitioner {

std::vector<std::string> device_names(const ClusterProfile& cluster) {
  std::vector<std::string> names;
  names.reserve(cluster.devices.size());
  for (const DeviceProfile& device : cluster.devices) {
    names.push_back(device.name);
  }
  return names;
}

std::string listed_devices(const std::vector<std::string>& names, const std::vector<int>& devices) {
  std::vector<std::string> listed;
  listed.reserve(devices.size());
  for (const int device : devices) {
    listed.push_back(names[static_cast<std::size_t>(device)]);
  }
  return fmt::format("{}", fmt::join(listed, ", "));
}

}  // namespace tessera::partitioner
