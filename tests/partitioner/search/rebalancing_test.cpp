#include "partitioner/search/rebalancing.h"

#include <cmath>

#include "tests/support/cuts.h"
#include "tests/support/random_cluster.h"
#include <doctest/doctest.h>

#include "partitioner/search/search.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

const std::vector<double> kPredicted{2, 2, 4};

std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> product(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    product[i] = a[i] * b[i];
  }
  return product;
}

TEST_CASE("two windows that agree on a new slowness ask for a search") {
  SlownessWatch watch(3);
  CHECK(!watch.add_window(times(kPredicted, {1.05, 1, 0.95}), kPredicted));
  CHECK(!watch.add_window(times(kPredicted, {1, 2, 1}), kPredicted));
  const auto slowness = watch.add_window(times(kPredicted, {1, 2.1, 1}), kPredicted);
  REQUIRE(slowness);
  CHECK((*slowness)[0] == doctest::Approx(1));
  CHECK((*slowness)[1] == doctest::Approx(std::sqrt(2 * 2.1)));
  CHECK((*slowness)[2] == doctest::Approx(1));
}

TEST_CASE("a single slow window, or windows that do not agree, change nothing") {
  SlownessWatch watch(3);
  CHECK(!watch.add_window(times(kPredicted, {1, 2, 1}), kPredicted));
  CHECK(!watch.add_window(times(kPredicted, {1, 1, 1}), kPredicted));
  CHECK(!watch.add_window(times(kPredicted, {1, 2, 1}), kPredicted));
  CHECK(!watch.add_window(times(kPredicted, {1, 3, 1}), kPredicted));
  CHECK(watch.add_window(times(kPredicted, {1, 3, 1}), kPredicted));
}

TEST_CASE("what a partition was found for asks for no other search, a return to the profile does") {
  SlownessWatch watch(2);
  const std::vector<double> predicted{1, 1};
  CHECK(!watch.add_window({1, 2}, predicted));
  const auto slowness = watch.add_window({1, 2}, predicted);
  REQUIRE(slowness);
  watch.settle(*slowness);
  // Another partition gives the slow device half of the work.
  CHECK(!watch.add_window({1.33, 1.33}, {1.33, 0.67}));
  CHECK(!watch.add_window({1.33, 1.33}, {1.33, 0.67}));
  CHECK(!watch.add_window({1.33, 0.67}, {1.33, 0.67}));
  CHECK(watch.add_window({1.33, 0.67}, {1.33, 0.67}));
}

TEST_CASE("a device without work is taken to be as slow as it was before") {
  SlownessWatch watch(2);
  CHECK(!watch.add_window({3, 5}, {1, 1}));
  const auto slowness = watch.add_window({3, 0}, {1, 0});
  REQUIRE(slowness);
  CHECK((*slowness)[0] == doctest::Approx(3));
  CHECK((*slowness)[1] == doctest::Approx(5));
}

TEST_CASE("a change has to save enough of a step, and more than it takes") {
  const SlownessWatch watch(2);
  CHECK(watch.is_worth_while(1.0, 0.8, 100, 5));
  CHECK(!watch.is_worth_while(1.0, 0.95, 1000, 5));
  CHECK(!watch.is_worth_while(1.0, 0.8, 20, 5));
  CHECK(!watch.is_worth_while(1.0, 1.2, 100, 0));
}

TEST_CASE("searches take no more than a twentieth of a run, however often speeds change") {
  SlownessWatch watch(2);
  CHECK(watch.may_search(-5));
  double searching_s = 0;
  constexpr double kSearch_s = 7;
  constexpr double kRun_s = 10000;
  for (double now_s = 0; now_s < kRun_s; now_s += 60) {
    if (watch.may_search(now_s)) {
      watch.note_search(now_s, now_s + kSearch_s);
      searching_s += kSearch_s;
      CHECK(!watch.may_search(now_s + 2 * kSearch_s));
    }
  }
  CHECK(searching_s > 0.02 * kRun_s);
  CHECK(searching_s <= 0.05 * kRun_s + kSearch_s);
}

TEST_CASE("devices that are slowed compute so many times as long, whatever the partition") {
  Network network;
  network.image = {3, 24, 16};
  add_layer(network,
            Convolution{.filters = 8, .size = 3, .padding = 1, .batch_normalize = true},
            {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {1});
  add_layer(network, AvgPool{}, {2});
  add_layer(network, Connected{.outputs = 4}, {3});
  add_layer(network, Softmax{}, {4});
  tests::Draw draw(3);
  for (int round = 0; round < 10; ++round) {
    const int devices = 2 + round % 3;
    const ClusterProfile cluster = tests::random_cluster(draw, devices);
    std::vector<double> slowness;
    for (int i = 0; i < devices; ++i) {
      slowness.push_back(0.25 + 0.5 * ((round + i) % 7));
    }
    SearchOptions options;
    options.batch = 2;
    options.counts_memory = false;
    const SearchResult found = search_partition(network, cluster, options);
    REQUIRE(!found.candidates.empty());
    const Plan plan = make_plan(network, found.candidates.front().partition, 2);
    const auto before = computing_seconds(network, plan, cluster, {});
    const auto after = computing_seconds(network, plan, slowed(cluster, slowness), {});
    double sum = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(after[i] == doctest::Approx(before[i] * slowness[i]));
      sum += before[i];
    }
    CHECK(sum > 0);
  }
}

TEST_CASE("of two equal devices one of which is slowed, it gets less work") {
  Network network;
  network.image = {8, 64, 64};
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {kImage});
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {0});
  const ClusterProfile cluster = equal_devices({.count = 2, .link_bits_per_s = 1e9});
  SearchOptions options;
  options.cost.has_loss = false;
  options.counts_memory = false;
  const auto work = [&](const std::vector<double>& slowness) {
    const auto found = search_partition(network, slowed(cluster, slowness), options);
    REQUIRE(!found.candidates.empty());
    return computing_seconds(
        network, make_plan(network, found.candidates.front().partition, 1), cluster, options.cost);
  };
  const std::vector<double> even = work({1, 1});
  CHECK(even[0] == doctest::Approx(even[1]).epsilon(0.1));
  const std::vector<double> uneven = work({1, 3});
  CHECK(uneven[0] > 2 * uneven[1]);
  CHECK(uneven[1] > 0);
}

}  // namespace
