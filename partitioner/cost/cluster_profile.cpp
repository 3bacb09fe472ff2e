#include "partitioner/cost/cluster_profile.h"

#include <algorithm>
#include <tuple>

#include "partitioner/base/errors.h"
#include "partitioner/cost/board_power.h"

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

std::optional<PowerProfile> known_power(const DeviceProfile& device) {
  if (device.power || device.board.empty()) {
    return device.power;
  }
  return power_profile(board_power(device.board));
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
  device.board = numbers.board;
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
  // Gradient, value and momentum are read, two of them written, and the gradient set to zero again.
  constexpr double kUpdateBytes = 6 * 4.0;
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
  return devices_from(cluster, 0, count);
}

ClusterProfile devices_from(const ClusterProfile& cluster, int first, int count) {
  expects(first >= 0 && count > 0 && count <= cluster.size() - first,
          "a part of a cluster has some of its devices");
  ClusterProfile part;
  part.link = cluster.link;
  part.devices.assign(cluster.devices.begin() + first, cluster.devices.begin() + first + count);
  for (LinkException link : cluster.exceptions) {
    link.from -= first;
    link.to -= first;
    if (std::min(link.from, link.to) >= 0 && std::max(link.from, link.to) < count) {
      part.exceptions.push_back(link);
    }
  }
  for (const AllReducePoint& point : cluster.all_reduces) {
    if (first == 0 && point.devices <= count) {
      part.all_reduces.push_back(point);
    }
  }
  return part;
}

ClusterProfile devices_of(const ClusterProfile& cluster, const std::vector<int>& devices) {
  expects(!devices.empty(), "a part of a cluster has some of its devices");
  ClusterProfile part;
  part.link = cluster.link;
  std::vector<int> place(cluster.devices.size(), -1);  // in the part
  int same = 0;                                        // of the first devices
  for (const int device : devices) {
    int& at = place[static_cast<std::size_t>(device)];
    expects(at < 0, "a device is there once");
    at = part.size();
    same += device == at && same == at ? 1 : 0;
    part.devices.push_back(cluster.device(device));
  }
  for (LinkException link : cluster.exceptions) {
    link.from = place[static_cast<std::size_t>(link.from)];
    link.to = place[static_cast<std::size_t>(link.to)];
    if (link.from >= 0 && link.to >= 0) {
      part.exceptions.push_back(link);
    }
  }
  std::sort(part.exceptions.begin(), part.exceptions.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.from, a.to) < std::tuple(b.from, b.to);
  });
  for (const AllReducePoint& point : cluster.all_reduces) {
    if (point.devices <= same) {
      part.all_reduces.push_back(point);
    }
  }
  return part;
}

}  // namespace tessera::partitioner
