#include "partitioner/cost/step_energy.h"

#include "tests/support/random_cluster.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

PowerProfile power(double idle_w, std::vector<double> busy_w) {
  PowerProfile profile;
  profile.idle_w = idle_w;
  profile.busy_w = std::move(busy_w);
  return profile;
}

// Links of 1 MB/s.
ClusterProfile two_metered_devices() {
  ClusterProfile cluster = equal_devices({.count = 2, .link_bits_per_s = 8e6});
  cluster.devices[0].power = power(1, {2, 3});
  cluster.devices[1].power = power(2, {6});
  return cluster;
}

TEST_CASE("energy is computing, handling and idling, each at its power") {
  const auto energy = step_energy(
      two_metered_devices(), {{.computing_s = 4, .handling_s = 1}, {.computing_s = 3}}, 10);
  REQUIRE(energy);
  CHECK(energy->per_device_j[0] == doctest::Approx(4 * 3 + 1 * 2 + 5 * 1));
  CHECK(energy->per_device_j[1] == doctest::Approx(3 * 6 + 7 * 2));
  CHECK(energy->energy_j == doctest::Approx(19 + 32));
  CHECK(energy->power_w() == doctest::Approx(5.1));
  CHECK(energy->energy_delay_js() == doctest::Approx(510));
  CHECK(!energy->estimated);
}

TEST_CASE(
    "where a link's power was measured its bytes take energy, the processor's part included") {
  ClusterProfile cluster = two_metered_devices();
  cluster.devices[0].power->sending_w = 1.5;
  cluster.devices[0].power->receiving_w = 1.25;
  const DeviceActivity activity{
      .computing_s = 4, .handling_s = 1, .sent_bytes = 2e6, .received_bytes = 1e6};
  const auto energy = step_energy(cluster, {activity, {}}, 10);
  REQUIRE(energy);
  CHECK(energy->per_device_j[0] ==
        doctest::Approx(4 * 3 + 6 * 1 + 2 * 0.5 + 1 * 0.25));  // s at 0.5 W, s at 0.25 W
}

TEST_CASE("a device without a part is off, or idle where that counts") {
  const ClusterProfile cluster = two_metered_devices();
  const std::vector<DeviceActivity> alone{{.computing_s = 10}, {}};
  CHECK(step_energy(cluster, alone, 10)->energy_j == doctest::Approx(30));
  CHECK(step_energy(cluster, alone, 10, IdleDevices::Counted)->energy_j == doctest::Approx(50));
}

TEST_CASE(
    "energy is unknown where the power of a device that counts is, and estimated by a table") {
  ClusterProfile cluster = two_metered_devices();
  cluster.devices[1].power.reset();
  cluster.devices[1].board = "";
  const std::vector<DeviceActivity> both{{.computing_s = 1}, {.computing_s = 1}};
  CHECK(!step_energy(cluster, both, 1));
  CHECK(step_energy(cluster, {{.computing_s = 1}, {}}, 1));
  CHECK(!step_energy(cluster, {{.computing_s = 1}, {}}, 1, IdleDevices::Counted));
  cluster.devices[1].board = "pi3b";
  const auto energy = step_energy(cluster, both, 1);
  REQUIRE(energy);
  CHECK(energy->estimated);
  CHECK(energy->relative_error == 0.25);
  CHECK(energy->energy_j == doctest::Approx(3 + 3.7));
}

TEST_CASE("what a simulated device does is no more than the step, and as much as was planned") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const Index batch = draw.between(1, 3);
    const Network network = tests::random_network(draw, {.batch = batch, .most_layers = 6});
    const int ranks = static_cast<int>(draw.between(1, 4));
    const ClusterProfile cluster = tests::random_cluster(draw, ranks);
    const Plan plan =
        make_plan(network, tests::random_partition(draw, network, batch, ranks), batch);
    const PricedStep priced = priced_step(network, plan, cluster, {});
    const SimulatedStep step = simulate(priced, cluster);
    double sent = 0;
    double received = 0;
    const auto activities = device_activities(plan, priced, step);
    for (std::size_t rank = 0; rank < activities.size(); ++rank) {
      const DeviceActivity& of = activities[rank];
      CHECK(of.computing_s + of.handling_s <= step.step_s * (1 + 1e-9));
      CHECK(of.computing_s ==
            doctest::Approx(step.seconds(static_cast<int>(rank), TimelineSpan::Doing::Compute)));
      sent += of.sent_bytes;
      received += of.received_bytes;
    }
    CHECK(sent == doctest::Approx(received));
  }
}

}  // namespace
