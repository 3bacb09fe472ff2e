#include "engine/probe/alike_devices.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::alike_devices;
using engine::describe_alike;
using partitioner::ClusterProfile;
using partitioner::ConvolutionKernel;
using partitioner::ConvolutionPoint;
using partitioner::DeviceProfile;

using Kinds = std::vector<std::vector<int>>;

ConvolutionPoint point(Index channels, double seconds) {
  ConvolutionPoint result;
  result.channels = channels;
  result.forward_s = seconds;
  result.backward_data_s = 2 * seconds;
  result.backward_weights_s = 3 * seconds;
  return result;
}

// So many times as fast as a device of 1 GFLOP/s.
DeviceProfile device(double speed) {
  DeviceProfile result;
  result.direct_flops_per_s = 1e9 * speed;
  result.winograd_flops_per_s = 2e9 * speed;
  result.pool = {3e9 * speed, 4e9 * speed};
  result.convolutions = {point(16, 1 / speed), point(32, 4 / speed)};
  return result;
}

ClusterProfile cluster_of(const std::vector<double>& speeds) {
  ClusterProfile cluster;
  for (const double speed : speeds) {
    cluster.devices.push_back(device(speed));
    cluster.devices.back().name = "device" + std::to_string(cluster.size());
    cluster.devices.back().memory_bytes = 1000 + cluster.size();
  }
  return cluster;
}

}  // namespace

TEST_CASE("devices are alike that are nearly as fast as the first of their kind") {
  CHECK(alike_devices(cluster_of({1, 1.1, 0.9, 2, 1, 2.1, 0.5})) ==
        Kinds{{0, 1, 2, 4}, {3, 5}, {6}});
  CHECK(alike_devices(cluster_of({1, 1.2})) == Kinds{{0}, {1}});
  CHECK(alike_devices(cluster_of({1.2, 1})) == Kinds{{0}, {1}});
  CHECK(alike_devices(cluster_of({1})) == Kinds{{0}});
}

TEST_CASE("a few odd measurements do not make a device another kind") {
  ClusterProfile cluster = cluster_of({1, 1});
  cluster.devices[1].convolutions[0].forward_s *= 5;
  cluster.devices[1].pool.forward_bytes_per_s /= 2;
  CHECK(alike_devices(cluster) == Kinds{{0, 1}});
}

TEST_CASE("devices of which nothing was measured are alike") {
  ClusterProfile cluster;
  cluster.devices.resize(3);
  CHECK(alike_devices(cluster) == Kinds{{0, 1, 2}});
  const ClusterProfile before = cluster;
  describe_alike({{0, 1, 2}}, cluster);
  CHECK(cluster == before);
}

TEST_CASE("devices of a kind get medians, and keep their names and memory") {
  ClusterProfile cluster = cluster_of({1, 1.1, 0.9, 3});
  cluster.devices[0].message_s = 1e-3;
  cluster.devices[1].message_s = 2e-3;
  cluster.devices[2].message_s = 9e-3;
  cluster.devices[0].first_message_s = 9e-3;
  cluster.devices[1].first_message_s = 5e-3;
  cluster.devices[2].first_message_s = 4e-3;
  cluster.devices[1].convolutions[0].backward_data_s *= 7;
  cluster.devices[2].convolutions.push_back(point(64, 10));
  const ClusterProfile before = cluster;
  describe_alike({{0, 1, 2}, {3}}, cluster);
  for (int rank = 0; rank < 3; ++rank) {
    const DeviceProfile& of = cluster.device(rank);
    CHECK(of.name == before.device(rank).name);
    CHECK(of.memory_bytes == before.device(rank).memory_bytes);
    CHECK(of.direct_flops_per_s == 1e9);
    CHECK(of.pool == before.device(0).pool);
    CHECK(of.message_s == 2e-3);
    CHECK(of.first_message_s == 5e-3);
    REQUIRE(of.convolutions.size() == 3);
    CHECK(of.convolutions[0].forward_s == 1);
    CHECK(of.convolutions[0].backward_data_s == doctest::Approx(2 / 0.9));
    CHECK(of.convolutions[1] == before.device(0).convolutions[1]);
    CHECK(of.convolutions[2] == point(64, 10));  // that only one had time for
  }
  CHECK(cluster.device(3) == before.device(3));
}

TEST_CASE("an interface that is far from the others of its kind keeps its rate") {
  ClusterProfile cluster = cluster_of({1, 1, 1});
  cluster.devices[0].send_bytes_per_s = 10e6;
  cluster.devices[1].send_bytes_per_s = 11e6;
  cluster.devices[2].send_bytes_per_s = 1e6;  // a bad cable
  describe_alike({{0, 1, 2}}, cluster);
  CHECK(cluster.device(0).send_bytes_per_s == 10e6);
  CHECK(cluster.device(1).send_bytes_per_s == 10e6);
  CHECK(cluster.device(2).send_bytes_per_s == 1e6);
}

TEST_CASE("devices of a kind share the power that some of them measured") {
  const auto power = [](double idle_w, bool estimated) {
    partitioner::PowerProfile result;
    result.source = estimated ? "table" : "rapl";
    result.estimated = estimated;
    result.idle_w = idle_w;
    result.busy_w = {idle_w + 1, idle_w + 2};
    return result;
  };
  ClusterProfile cluster = cluster_of({1, 1, 1, 1, 1, 2});
  cluster.devices[0].power = power(100, true);
  cluster.devices[1].power = power(2, false);
  cluster.devices[2].power = power(3, false);
  cluster.devices[2].power->sending_w = 3.5;
  cluster.devices[3].power = power(7, false);
  cluster.devices[5].power = power(50, true);
  describe_alike({{0, 1, 2, 3, 4}, {5}}, cluster);
  partitioner::PowerProfile common = power(3, false);
  common.sending_w = 3.5;
  for (int rank = 0; rank < 5; ++rank) {
    CHECK(cluster.device(rank).power == common);
  }
  CHECK(cluster.device(5).power == power(50, true));
}
