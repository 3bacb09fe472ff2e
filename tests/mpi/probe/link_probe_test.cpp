#include "engine/probe/link_probe.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;

bool is_positive(double value) {
  return value > 0 && std::isfinite(value);
}

TEST_CASE("links are measured in a short time, each with a rate and both ends with one latency") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const auto links = measure_links(world, 0.2);
  CHECK(is_positive(links.message_s));
  CHECK(is_positive(links.first_message_s));
  CHECK(links.byte_s >= 0);
  CHECK(links.byte_s < 1e-6);
  CHECK(is_positive(links.send_bytes_per_s));
  CHECK(is_positive(links.receive_bytes_per_s));
  std::vector<std::vector<double>> halves;  // [to][of rank]
  for (const double half_s : links.half_round_trip_s) {
    halves.push_back(world.of_ranks(half_s));
  }
  const auto own = static_cast<std::size_t>(world.rank());
  for (std::size_t peer = 0; peer < halves.size(); ++peer) {
    CAPTURE(peer);
    CHECK(is_positive(links.half_round_trip_s[peer]) == (peer != own));
    CHECK(is_positive(links.received_bytes_per_s[peer]) == (peer != own));
    CHECK(halves[own][peer] == links.half_round_trip_s[peer]);
  }
}

TEST_CASE("a profile with the links of all ranks is read as it was written") {
  const Communicator world = Communicator::world();
  if (world.size() == 1) {
    return;
  }
  const auto links = links_of_ranks(measure_links(world, 0.1), world);
  auto cluster = partitioner::equal_devices({.count = world.size()});
  describe_links(links, cluster);
  cluster.all_reduces = measure_all_reduces(world, 0.05);
  CHECK(partitioner::parse_cluster_profile(to_text(cluster), "profile") == cluster);
}

TEST_CASE(
    "all-reduces are measured over more and more ranks, the same on all, with growing sizes") {
  const Communicator world = Communicator::world();
  const auto points = measure_all_reduces(world, 0.1);
  REQUIRE_FALSE(points.empty());
  CHECK(points.back().devices == world.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(points[i].bytes > 0);
    CHECK(points[i].seconds >= 0);
    CHECK(std::isfinite(points[i].seconds));
    CHECK(world.share(points[i].seconds) == points[i].seconds);
    if (i > 0) {
      const bool same = points[i].devices == points[i - 1].devices;
      CHECK((same ? points[i].bytes > points[i - 1].bytes
                  : points[i].devices > points[i - 1].devices));
    }
  }
}

}  // namespace
