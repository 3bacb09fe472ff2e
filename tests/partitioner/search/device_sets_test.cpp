#include "partitioner/search/device_sets.h"

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/random_cluster.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;

// Two convolutions and a dense layer on small pictures.
Network small_network() {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {1});
  add_layer(network, Connected{.outputs = 10}, {2});
  add_layer(network, Softmax{}, {3});
  return network;
}

SearchOptions quick(Index batch) {
  SearchOptions options;
  options.batch = batch;
  options.counts_memory = false;
  options.candidates = 2;
  return options;
}

std::vector<std::vector<int>> all_sets(int devices) {
  std::vector<std::vector<int>> sets;
  for (unsigned bits = 1; bits < 1U << static_cast<unsigned>(devices); ++bits) {
    std::vector<int>& set = sets.emplace_back();
    for (int device = 0; device < devices; ++device) {
      if ((bits >> static_cast<unsigned>(device) & 1U) != 0) {
        set.push_back(device);
      }
    }
  }
  return sets;
}

// A candidate that takes so long and so many watts.
Candidate made_up(double step_s, double power_w) {
  Candidate candidate;
  candidate.modelled_s = step_s;
  candidate.energy = StepEnergy{.step_s = step_s, .energy_j = step_s * power_w};
  return candidate;
}

// Of work that is shared out without loss.
double share_of(const std::vector<int>& devices) {
  return 1 / static_cast<double>(devices.size());
}

TEST_CASE("devices stand for each other where profile and links are equal") {
  ClusterProfile cluster = equal_devices({.count = 5});
  CHECK(device_kinds(cluster).size() == 1);
  cluster.devices[3].direct_flops_per_s *= 2;
  CHECK(device_kinds(cluster) == std::vector<std::vector<int>>{{0, 1, 2, 4}, {3}});
  CHECK(device_kinds(cluster, 0) == std::vector<std::vector<int>>{{0}, {1, 2, 4}, {3}});
  cluster.exceptions = {{1, 2, {1, 1e3}}};  // not so the other way round
  CHECK(device_kinds(cluster) == std::vector<std::vector<int>>{{0, 4}, {1}, {2}, {3}});
}

TEST_CASE("a search of some devices is that of a cluster of these, on their ranks") {
  const Network network = small_network();
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const ClusterProfile cluster = tests::random_cluster(draw, 4);
    const std::vector<int> devices = {3, 0, 2};
    SearchOptions options = quick(4);
    options.reader = Reader::rank(2);
    const SearchResult found = search_devices(network, cluster, options, devices);
    options.reader = Reader::rank(2);  // of the part: device 2 is its third
    const SearchResult alone = search_partition(network, devices_of(cluster, devices), options);
    REQUIRE(!found.candidates.empty());
    const Partition& partition = found.candidates.front().partition;
    validate(partition, network, 4, "it");
    CHECK(partition.ranks == 4);
    CHECK(partition.reader == Reader::rank(2));
    CHECK(partition == on_ranks(alone.candidates.front().partition, devices, 4));
    CHECK(found.candidates.front().predicted_s() == alone.candidates.front().predicted_s());
    for (const int rank : busy_ranks(partition)) {
      CHECK(rank != 1);
    }
  }
}

TEST_CASE("of all sets the search finds the one that trying out every set finds") {
  const Network network = small_network();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Draw draw(seed);
    ClusterProfile cluster = tests::random_cluster(draw, static_cast<int>(draw.between(2, 4)));
    for (DeviceProfile& device : cluster.devices) {
      device.board = draw.among<std::string>({"pi3b", "pi4b", "pi5"});
    }
    const SearchOptions options = quick(4);
    std::map<std::vector<int>, Candidate> known;
    const auto find = [&](const std::vector<int>& devices) -> std::optional<Candidate> {
      return search_devices(network, cluster, options, devices).candidates.front();
    };
    for (const auto& devices : all_sets(cluster.size())) {
      known[devices] = *find(devices);
    }
    for (const Objective objective :
         {Objective::Time, Objective::Power, Objective::Energy, Objective::EnergyDelay}) {
      CAPTURE(seed);
      CAPTURE(name_of(objective));
      DeviceSetOptions wishes;
      wishes.objective = objective;
      const DeviceSetSearch search = search_device_sets(cluster, wishes, one_by_one(find));
      double least = kInfiniteRate;
      for (const auto& [devices, candidate] : known) {
        least = std::min(least, objective_value(objective, candidate));
      }
      CHECK(objective_value(objective, *search.sets.front().found) == doctest::Approx(least));
      CHECK(std::is_sorted(
          search.sets.begin(), search.sets.end(), [&](const DeviceSet& a, const DeviceSet& b) {
            return objective_value(objective, *a.found) < objective_value(objective, *b.found);
          }));
    }
  }
}

TEST_CASE("a needed device is in every set, and what does not fit comes last") {
  const ClusterProfile cluster = equal_devices({.count = 3});
  DeviceSetOptions options;
  options.needed = 1;
  const DeviceSetSearch search = search_device_sets(
      cluster, options, one_by_one([](const std::vector<int>& devices) {
        return devices.size() == 1 ? std::nullopt : std::optional(made_up(share_of(devices), 1));
      }));
  CHECK(search.all == 3);  // it alone, with one of the others, with both
  REQUIRE(search.sets.size() == 3);
  for (const DeviceSet& set : search.sets) {
    CHECK(std::binary_search(set.devices.begin(), set.devices.end(), 1));
  }
  CHECK(search.sets.front().devices.size() == 3);
  CHECK(!search.sets.back().found);
}

TEST_CASE("of twelve unequal devices few sets are searched, and the best is among them") {
  ClusterProfile cluster = equal_devices({.count = 12});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    std::vector<double> speeds;
    for (DeviceProfile& device : cluster.devices) {
      // No two are equal.
      speeds.push_back(static_cast<double>(draw.between(10, 100)) +
                       0.01 * static_cast<double>(speeds.size()));
      device.direct_flops_per_s = 1e9 * speeds.back();
    }
    const double message_s = 1e-4 * static_cast<double>(draw.between(0, 20));
    // Work shared out by speed, and messages to each of the others.
    const auto find = [&](const std::vector<int>& devices) -> std::optional<Candidate> {
      double speed = 0;
      double power_w = 0;
      for (const int device : devices) {
        speed += speeds[static_cast<std::size_t>(device)];
        power_w += 1 + 0.1 * speeds[static_cast<std::size_t>(device)];
      }
      const auto others = static_cast<double>(devices.size() - 1);
      return made_up(1 / speed + others * message_s, power_w);
    };
    for (const Objective objective : {Objective::Time, Objective::Energy, Objective::EnergyDelay}) {
      CAPTURE(seed);
      CAPTURE(name_of(objective));
      DeviceSetOptions options;
      options.objective = objective;
      const DeviceSetSearch search = search_device_sets(cluster, options, one_by_one(find));
      double least = kInfiniteRate;
      for (const auto& devices : all_sets(12)) {
        least = std::min(least, objective_value(objective, *find(devices)));
      }
      CHECK(search.all == 4095);
      CHECK(search.sets.size() <= options.most);
      CHECK(objective_value(objective, *search.sets.front().found) <= 1.02 * least);
    }
  }
}

TEST_CASE("twelve equal devices are twelve sets") {
  const ClusterProfile cluster = equal_devices({.count = 12});
  std::set<std::size_t> sizes;
  const DeviceSetSearch search =
      search_device_sets(cluster, {}, one_by_one([&](const std::vector<int>& devices) {
                           CHECK(sizes.insert(devices.size()).second);
                           return std::optional(made_up(share_of(devices), 1));
                         }));
  CHECK(search.sets.size() == 12);
  CHECK(search.all == 12);
}

TEST_CASE("sets that exceed a limit come behind those that keep it") {
  const ClusterProfile cluster = equal_devices({.count = 4});
  DeviceSetOptions options;
  options.limits.watts = 2.5;
  const DeviceSetSearch search =
      search_device_sets(cluster, options, one_by_one([](const std::vector<int>& devices) {
                           const auto count = static_cast<double>(devices.size());
                           return std::optional(made_up(1 / count, count));
                         }));
  std::vector<std::size_t> sizes;
  for (const DeviceSet& set : search.sets) {
    sizes.push_back(set.devices.size());
  }
  CHECK(sizes == std::vector<std::size_t>{2, 1, 3, 4});
}

TEST_CASE("on equal boards that gain less than they are more, one takes the least energy") {
  const Network network = small_network();
  ClusterProfile cluster = equal_devices({.count = 4});
  SearchOptions options = quick(64);
  const auto best = [&](Objective objective) {
    options.objective = objective;
    DeviceSetOptions wishes;
    wishes.objective = objective;
    return search_device_sets(
               cluster, wishes, one_by_one([&](const std::vector<int>& devices) {
                 SearchOptions by_time = options;
                 by_time.objective = Objective::Time;
                 return std::optional(
                     search_devices(network, cluster, by_time, devices).candidates.front());
               }))
        .sets.front()
        .devices.size();
  };
  const std::size_t fastest = best(Objective::Time);
  REQUIRE(fastest > 1);
  CHECK(best(Objective::Energy) == 1);
  CHECK(best(Objective::Power) == 1);
  CHECK(best(Objective::EnergyDelay) > 1);
  // The search of all devices comes to the same by itself.
  options.objective = Objective::Energy;
  const Partition frugal = search_partition(network, cluster, options).candidates.front().partition;
  CHECK(busy_ranks(frugal).size() == 1);
}

}  // namespace
