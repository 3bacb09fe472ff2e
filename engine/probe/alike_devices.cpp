#include "engine/probe/alike_devices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "engine/base/median.h"

namespace tessera::engine {

namespace {

using partitioner::ClusterProfile;
using partitioner::ConvolutionKernel;
using partitioner::ConvolutionPoint;
using partitioner::DeviceProfile;
using partitioner::PowerProfile;

constexpr double kOfAKind = 1.0 / 8;
constexpr double kSameRate = 1.0 / 5;
constexpr std::array kInterfaceRates = {&DeviceProfile::send_bytes_per_s,
                                        &DeviceProfile::receive_bytes_per_s};

// Rates of interfaces aside: those are of cables and switches.
template <class Device, class Visit>
void for_each_rate(Device& device, const Visit& visit) {
  visit(device.memory_bytes_per_s);
  visit(device.copied_bytes_per_s);
  visit(device.direct_flops_per_s);
  visit(device.winograd_flops_per_s);
  for (auto rates : partitioner::kPassRates) {
    visit((device.*rates).forward_bytes_per_s);
    visit((device.*rates).backward_bytes_per_s);
  }
  visit(device.updated_weights_per_s);
}

std::vector<double> rates_of(const DeviceProfile& device) {
  std::vector<double> rates;
  for_each_rate(device, [&](double rate) { rates.push_back(rate); });
  return rates;
}

using Shape = std::tuple<ConvolutionKernel, Index, Index, Index, Index, Index, Index, Index>;

Shape shape_of(const ConvolutionPoint& point) {
  return {point.kernel,
          point.channels,
          point.filters,
          point.size,
          point.stride,
          point.groups,
          point.rows,
          point.cols};
}

double point_seconds(const ConvolutionPoint& point) {
  return point.forward_s + point.backward_data_s + point.backward_weights_s;
}

// How many times as fast as b is a? The median of what both have measured; 1 where that is nothing.
double times_as_fast(const DeviceProfile& a, const DeviceProfile& b) {
  std::vector<double> ratios;
  const std::vector<double> rates = rates_of(a);
  const std::vector<double> others = rates_of(b);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (std::isfinite(rates[i]) && std::isfinite(others[i])) {
      ratios.push_back(rates[i] / others[i]);
    }
  }
  for (const ConvolutionPoint& point : a.convolutions) {
    for (const ConvolutionPoint& other : b.convolutions) {
      if (shape_of(point) == shape_of(other)) {
        ratios.push_back(point_seconds(other) / point_seconds(point));
      }
    }
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

bool are_alike(const DeviceProfile& a, const DeviceProfile& b) {
  const double ratio = times_as_fast(a, b);
  return ratio < 1 + kOfAKind && 1 < ratio * (1 + kOfAKind);
}

template <class Number>
double median_of(const std::vector<DeviceProfile>& devices, const Number& number) {
  std::vector<double> values;
  for (const DeviceProfile& device : devices) {
    values.push_back(number(device));
  }
  return median(std::move(values));
}

// Each shape that any of the devices has measured, in the order in which they come.
std::vector<ConvolutionPoint> median_convolutions(const std::vector<DeviceProfile>& devices) {
  std::map<Shape, std::vector<ConvolutionPoint>> measured;
  std::vector<ConvolutionPoint> result;
  for (const DeviceProfile& device : devices) {
    for (const ConvolutionPoint& point : device.convolutions) {
      auto& points = measured[shape_of(point)];
      if (points.empty()) {
        result.push_back(point);
      }
      points.push_back(point);
    }
  }
  for (ConvolutionPoint& point : result) {
    const auto& points = measured.at(shape_of(point));
    for (const auto seconds : {&ConvolutionPoint::forward_s,
                               &ConvolutionPoint::backward_data_s,
                               &ConvolutionPoint::backward_weights_s}) {
      std::vector<double> values;
      for (const ConvolutionPoint& each : points) {
        values.push_back(each.*seconds);
      }
      point.*seconds = median(std::move(values));
    }
  }
  return result;
}

// The median of numbers that some of `powers` have; nothing where none has.
std::optional<double> median_watts(const std::vector<PowerProfile>& powers,
                                   std::optional<double> PowerProfile::*watts) {
  std::vector<double> values;
  for (const PowerProfile& power : powers) {
    if (power.*watts) {
      values.push_back(*(power.*watts));
    }
  }
  return values.empty() ? std::nullopt : std::optional(median(std::move(values)));
}

// The power of the devices that measured the same thing as the first that did, estimates only where
// none did. It is also of those that have no meter.
std::optional<PowerProfile> median_power(const std::vector<DeviceProfile>& devices) {
  std::vector<PowerProfile> powers;
  for (const bool estimated : {false, true}) {
    for (const DeviceProfile& device : devices) {
      if (device.power && device.power->estimated == estimated &&
          (powers.empty() || (device.power->scope == powers.front().scope &&
                              device.power->busy_w.size() == powers.front().busy_w.size()))) {
        powers.push_back(*device.power);
      }
    }
    if (!powers.empty()) {
      break;
    }
  }
  if (powers.empty()) {
    return std::nullopt;
  }
  PowerProfile common = powers.front();
  const auto median_over = [&powers](const auto& number) {
    std::vector<double> values;
    for (const PowerProfile& power : powers) {
      values.push_back(number(power));
    }
    return median(std::move(values));
  };
  common.idle_w = median_over([](const PowerProfile& power) { return power.idle_w; });
  for (std::size_t i = 0; i < common.busy_w.size(); ++i) {
    common.busy_w[i] = median_over([i](const PowerProfile& power) { return power.busy_w[i]; });
  }
  common.sending_w = median_watts(powers, &PowerProfile::sending_w);
  common.receiving_w = median_watts(powers, &PowerProfile::receiving_w);
  return common;
}

void describe_kind(const std::vector<int>& kind, ClusterProfile& cluster) {
  std::vector<DeviceProfile> devices;
  for (const int rank : kind) {
    devices.push_back(cluster.device(rank));
  }
  DeviceProfile common = devices.front();
  std::size_t number = 0;
  for_each_rate(common, [&](double& rate) {
    rate =
        median_of(devices, [&](const DeviceProfile& device) { return rates_of(device)[number]; });
    ++number;
  });
  common.message_s =
      median_of(devices, [](const DeviceProfile& device) { return device.message_s; });
  common.first_message_s =
      median_of(devices, [](const DeviceProfile& device) { return device.first_message_s; });
  common.convolutions = median_convolutions(devices);
  common.power = median_power(devices);
  for (const auto rate : kInterfaceRates) {
    common.*rate = median_of(devices, [&](const DeviceProfile& device) { return device.*rate; });
  }
  for (const int rank : kind) {
    DeviceProfile& device = cluster.devices[static_cast<std::size_t>(rank)];
    const DeviceProfile own = device;
    device = common;
    device.name = own.name;
    device.memory_bytes = own.memory_bytes;
    device.program_bytes = own.program_bytes;
    for (const auto rate : kInterfaceRates) {
      if (!(std::abs(own.*rate - common.*rate) < kSameRate * common.*rate)) {
        device.*rate = own.*rate;
      }
    }
  }
}

}  // namespace

std::vector<std::vector<int>> alike_devices(const ClusterProfile& cluster) {
  std::vector<std::vector<int>> kinds;
  for (int rank = 0; rank < cluster.size(); ++rank) {
    const auto kind =
        std::find_if(kinds.begin(), kinds.end(), [&](const std::vector<int>& kind_devices) {
          return are_alike(cluster.device(kind_devices.front()), cluster.device(rank));
        });
    if (kind == kinds.end()) {
      kinds.push_back({rank});
    } else {
      kind->push_back(rank);
    }
  }
  return kinds;
}

void describe_alike(const std::vector<std::vector<int>>& kinds, ClusterProfile& cluster) {
  for (const std::vector<int>& kind : kinds) {
    describe_kind(kind, cluster);
  }
}

}  // namespace tessera::engine
