#include "tests/support/random_cluster.h"

#include <cmath>

namespace tessera::tests {

using partitioner::ClusterProfile;
using partitioner::ConvolutionPoint;
using partitioner::DeviceProfile;

namespace {

// Of any order of magnitude between the two.
double between(Draw& draw, double least, double most) {
  const double part = static_cast<double>(draw.between(0, 1000)) / 1000;
  return least * std::pow(most / least, part);
}

ConvolutionPoint random_point(Draw& draw) {
  ConvolutionPoint point;
  point.size = draw.among<Index>({1, 3, 5});
  point.kernel = point.size == 3 ? draw.among({partitioner::ConvolutionKernel::Direct,
                                               partitioner::ConvolutionKernel::Winograd2,
                                               partitioner::ConvolutionKernel::Winograd4})
                                 : partitioner::ConvolutionKernel::Direct;
  point.channels = draw.between(1, 64);
  point.filters = draw.between(1, 64);
  point.stride = point.size == 3 ? 1 : draw.between(1, 2);
  point.rows = draw.between(4, 40);
  point.cols = draw.between(4, 40);
  point.forward_s = between(draw, 1e-5, 1e-3);
  point.backward_data_s = between(draw, 1e-5, 1e-3);
  point.backward_weights_s = between(draw, 1e-5, 1e-3);
  return point;
}

DeviceProfile random_device(Draw& draw) {
  const auto rates = [&draw] {
    return partitioner::PassRates{between(draw, 1e8, 1e9), between(draw, 1e8, 1e9)};
  };
  DeviceProfile device;
  device.memory_bytes = draw.between(1, Index{1} << 32U);
  device.program_bytes = draw.between(0, Index{1} << 25U);
  device.memory_bytes_per_s = between(draw, 1e9, 1e10);
  device.message_s = draw.chance(0.5) ? 0 : between(draw, 1e-6, 1e-4);
  constexpr double kSlow = 1e-5;
  device.first_message_s = device.message_s > kSlow ? 3 * device.message_s : 0;
  device.copied_bytes_per_s = between(draw, 1e8, 1e9);
  device.send_bytes_per_s = between(draw, 1e6, 1e8);
  device.receive_bytes_per_s = between(draw, 1e6, 1e8);
  device.direct_flops_per_s = between(draw, 1e9, 1e10);
  device.winograd_flops_per_s = between(draw, 1e9, 1e10);
  device.normalize = rates();
  device.activate = rates();
  device.pool = rates();
  device.elementwise = rates();
  device.updated_weights_per_s = between(draw, 1e7, 1e9);
  for (Index points = draw.between(0, 4); points > 0; --points) {
    device.convolutions.push_back(random_point(draw));
  }
  return device;
}

}  // namespace

ClusterProfile random_cluster(Draw& draw, int devices) {
  ClusterProfile cluster;
  const bool alike = draw.chance(0.3);
  for (int i = 0; i < devices; ++i) {
    cluster.devices.push_back(alike && i > 0 ? cluster.devices.front() : random_device(draw));
    cluster.devices.back().name = "device" + std::to_string(i);
  }
  cluster.link = {between(draw, 1e-5, 1e-3), between(draw, 1e6, 1e8)};
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to && draw.chance(0.1)) {
        cluster.exceptions.push_back(
            {from, to, {between(draw, 1e-5, 1e-2), between(draw, 1e5, 1e7)}});
      }
    }
  }
  if (draw.chance(0.5)) {
    cluster.all_reduces.push_back({devices, draw.between(0, 1 << 20), between(draw, 1e-4, 1)});
  }
  return cluster;
}

}  // namespace tessera::tests
