#include "partitioner/cost/cluster_profile.h"

#include <algorithm>
#include <tuple>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

const LinkProfile& ClusterProfile::between(int from, int to) const {
  const auto found = std::lower_bound(exceptions.begin(),
                                      exceptions.end(),
                                      std::tuple(from, to),
                                      [](const LinkException& exception, const auto& pair) {
                                        return std::tuple(exception.from, exception.to) < pair;
                                      });
  const bool listed = found != exceptions.end() && found->from == from && found->to == to;
  return listed ? found->link : link;
}

ClusterProfile equal_devices(const EqualDevices& numbers) {
  expects(numbers.count > 0, "a cluster has a device");
  // How often each byte of a map crosses the memory bus: to normalise, the pre-activations are read
  // for the statistics, read again and written; backward they are read twice with their gradient,
  // which is written twice. To activate: one read and one write, two reads and one write and a read
  // for the bias. Pools and elementwise layers count inputs and outputs once forward, and backward
  // read what they add to as well.
  const double bus = numbers.memory_bytes_per_s;
  DeviceProfile device;
  device.memory_bytes = numbers.memory_bytes;
  device.program_bytes = numbers.program_bytes;
  device.memory_bytes_per_s = bus;
  device.message_s = numbers.message_s;
  device.copied_bytes_per_s = bus / 2;
  device.send_bytes_per_s = numbers.link_bits_per_s / 8;
  device.receive_bytes_per_s = numbers.link_bits_per_s / 8;
  device.direct_flops_per_s = numbers.direct_flops_per_s;
  device.winograd_flops_per_s = numbers.winograd_flops_per_s;
  device.normalize = {bus / 3, bus / 6};
  device.activate = {bus / 2, bus / 4};
  device.pool = {bus, bus / 2};
  device.elementwise = {bus, bus / 2};
  constexpr double kUpdateBytes =
      5 * 4.0;  // gradient, value and momentum read, two of them written
  device.updated_weights_per_s = bus / kUpdateBytes;
  ClusterProfile cluster;
  cluster.link = {numbers.latency_s, numbers.link_bits_per_s / 8};
  for (int i = 0; i < numbers.count; ++i) {
    cluster.devices.push_back(device);
    cluster.devices.back().name = "device" + std::to_string(i);
  }
  return cluster;
}

std::vector<Index> program_bytes(const ClusterProfile& cluster) {
  std::vector<Index> bytes;
  bytes.reserve(cluster.devices.size());
  for (const DeviceProfile& device : cluster.devices) {
    bytes.push_back(device.program_bytes);
  }
  return bytes;
}

ClusterProfile first_devices(const ClusterProfile& cluster, int count) {
  expects(count > 0 && count <= cluster.size(), "a part of a cluster has some of its devices");
  ClusterProfile part = cluster;
  part.devices.resize(static_cast<std::size_t>(count));
  std::erase_if(part.exceptions, [count](const LinkException& link) {
    return link.from >= count || link.to >= count;
  });
  std::erase_if(part.all_reduces,
                [count](const AllReducePoint& point) { return point.devices > count; });
  return part;
}

}  // namespace tessera::partitioner
