#include <doctest/doctest.h>

#include "engine/probe/link_probe.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::LinkMeasurements;
using partitioner::ClusterProfile;

// Ranks whose links all have the same numbers.
std::vector<LinkMeasurements> equal_links(std::size_t ranks) {
  std::vector<LinkMeasurements> links(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    links[rank] = {2e-5, 5e-5, 1e-9, 1.1e7, 1.2e7, {}, {}};
    links[rank].half_round_trip_s.assign(ranks, 2e-4);
    links[rank].received_bytes_per_s.assign(ranks, 1e7);
    links[rank].half_round_trip_s[rank] = 0;
    links[rank].received_bytes_per_s[rank] = 0;
  }
  return links;
}

ClusterProfile described(const std::vector<LinkMeasurements>& links) {
  ClusterProfile cluster = partitioner::equal_devices({.count = static_cast<int>(links.size())});
  describe_links(links, cluster);
  return cluster;
}

TEST_CASE("equal links are written once, and the latency is what processors do not account for") {
  const ClusterProfile cluster = described(equal_links(4));
  CHECK(cluster.exceptions.empty());
  CHECK(cluster.link.latency_s == doctest::Approx(2e-4 - 2 * 2e-5));
  CHECK(cluster.link.bytes_per_s == 1e7);
  CHECK(cluster.device(2).message_s == 2e-5);
  CHECK(cluster.device(2).first_message_s == 5e-5);
  CHECK(cluster.device(2).send_bytes_per_s == 1.1e7);
  CHECK(cluster.device(2).receive_bytes_per_s == 1.2e7);
}

TEST_CASE("bytes of a message are packed and handed to the network by the same processor") {
  ClusterProfile cluster = partitioner::equal_devices({.count = 2});
  cluster.devices[0].copied_bytes_per_s = 1e9;
  cluster.devices[1].copied_bytes_per_s = partitioner::kInfiniteRate;
  describe_links(equal_links(2), cluster);
  CHECK(cluster.device(0).copied_bytes_per_s == doctest::Approx(5e8));
  CHECK(cluster.device(1).copied_bytes_per_s == doctest::Approx(1e9));
}

TEST_CASE("a latency is never less than 0") {
  auto links = equal_links(2);
  links[0].message_s = 1;
  CHECK(described(links).link.latency_s == 0);
}

TEST_CASE("a slower direction of one pair is listed, and nothing that differs by noise") {
  auto links = equal_links(4);
  links[1].received_bytes_per_s[3] = 2e6;  // from 3 to 1
  links[0].received_bytes_per_s[2] = 1.1e7;
  links[2].half_round_trip_s[0] = 2.2e-4;
  const ClusterProfile cluster = described(links);
  REQUIRE(cluster.exceptions.size() == 1);
  CHECK(cluster.exceptions[0].from == 3);
  CHECK(cluster.exceptions[0].to == 1);
  CHECK(cluster.between(3, 1).bytes_per_s == 2e6);
  CHECK(cluster.between(1, 3).bytes_per_s == 1e7);
}

TEST_CASE("a slower answer of one pair is listed in both directions") {
  auto links = equal_links(4);
  links[1].half_round_trip_s[3] = links[3].half_round_trip_s[1] = 5e-3;
  const ClusterProfile cluster = described(links);
  CHECK(cluster.exceptions.size() == 2);
  CHECK(cluster.between(1, 3).latency_s == doctest::Approx(5e-3 - 4e-5));
  CHECK(cluster.between(3, 1).latency_s == doctest::Approx(5e-3 - 4e-5));
}

}  // namespace
