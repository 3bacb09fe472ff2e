#include "partitioner/search/fitting.h"

#include <doctest/doctest.h>

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

// Large maps and few weights: what it takes depends on images and devices.
Network wide_network() {
  Network network;
  network.image = {3, 64, 64};
  Convolution convolution;
  convolution.filters = 16;
  convolution.size = 3;
  convolution.padding = 1;
  convolution.batch_normalize = true;
  add_layer(network, convolution, {kImage});
  add_layer(network, convolution, {0});
  return network;
}

// Bytes of the device that uses the most.
Index needed(const ClusterProfile& cluster, SearchOptions options) {
  options.objective = Objective::Memory;
  options.memory_limit_bytes.reset();
  return search_partition(wide_network(), cluster, options).candidates.front().most_bytes();
}

}  // namespace

TEST_CASE("what is said to make a network fit makes it fit") {
  const Network network = wide_network();
  const ClusterProfile two = equal_devices({.count = 2});
  SearchOptions options;
  options.batch = 8;
  options.memory_limit_bytes = needed(with_one_more(network, two), options);
  REQUIRE(*options.memory_limit_bytes < needed(two, options));
  const SearchResult result = search_partition(network, two, options);
  REQUIRE(result.candidates.empty());
  const Remedies remedies = find_remedies(network, two, options);
  REQUIRE(remedies.passes);
  CHECK(remedies.devices == 3);
  SearchOptions fewer = options;
  fewer.batch = 8 / *remedies.passes;
  fewer.cost.passes = *remedies.passes;
  CHECK(!search_partition(network, two, fewer).candidates.empty());
  const std::string why = why_nothing_fits(network, two, options, *result.smallest);
  CHECK(why.find("it would fit with --subdivisions") != std::string::npos);
  CHECK(why.find("or on 3 devices") != std::string::npos);
}

TEST_CASE("where nothing helps it says so") {
  const Network network = wide_network();
  const ClusterProfile one = equal_devices({.count = 1});
  SearchOptions options;
  options.memory_limit_bytes = 1000;
  const SearchResult result = search_partition(network, one, options);
  REQUIRE(result.smallest);
  CHECK(why_nothing_fits(network, one, options, *result.smallest).find("neither") !=
        std::string::npos);
}

TEST_CASE("the device that lacks the largest share is the one that is named") {
  Candidate candidate;
  candidate.memory = {{.weights = 90}, {.weights = 70}, {.weights = 10}};
  const Shortage shortage = largest_shortage(candidate.memory, {100, 50, 20});
  CHECK(shortage.rank == 1);
  CHECK(shortage.missing_bytes() == 20);
}

TEST_CASE("one more device is like the slowest") {
  ClusterProfile cluster = equal_devices({.count = 3});
  cluster.devices[1].direct_flops_per_s /= 2;
  const ClusterProfile larger = with_one_more(wide_network(), cluster);
  REQUIRE(larger.size() == 4);
  CHECK(larger.device(3).direct_flops_per_s == cluster.device(1).direct_flops_per_s);
}
