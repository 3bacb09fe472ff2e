#include "partitioner/text/alternatives.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/widest_line.h"
#include <doctest/doctest.h>

#include "partitioner/balance/balance.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

Convolution convolution(Index filters) {
  return {.filters = filters, .size = 3, .padding = 1};
}

// Much to compute and few weights: large maps.
Network deep_network() {
  Network network;
  network.image = {3, 64, 64};
  add_layer(network, convolution(16), {kImage});
  add_layer(network, convolution(16), {0});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {1});
  add_layer(network, convolution(16), {2});
  return network;
}

// Little to compute and many weights.
Network shallow_network() {
  Network network;
  network.image = {1, 28, 28};
  add_layer(network, Connected{.outputs = 256}, {kImage});
  add_layer(network, Connected{.outputs = 10}, {0});
  add_layer(network, Softmax{}, {1});
  return network;
}

SearchOptions options(Index batch) {
  SearchOptions options;
  options.batch = batch;
  options.candidates = 2;
  return options;
}

Alternatives alternatives_of(const Network& network,
                             const ClusterProfile& cluster,
                             Index batch,
                             const std::optional<DataLocation>& data = std::nullopt) {
  const SearchOptions of = options(batch);
  const Partition chosen = search_partition(network, cluster, of).candidates.front().partition;
  return compare_alternatives(network, cluster, of, chosen, data);
}

const Alternative* named(const Alternatives& alternatives, const std::string& name) {
  const auto found = std::find_if(alternatives.all.begin(),
                                  alternatives.all.end(),
                                  [&](const Alternative& each) { return each.name == name; });
  return found == alternatives.all.end() ? nullptr : &*found;
}

bool says(const Alternatives& alternatives, const std::string& text) {
  return std::any_of(
      alternatives.why.begin(), alternatives.why.end(), [&](const std::string& sentence) {
        return sentence.find(text) != std::string::npos;
      });
}

TEST_CASE("alternatives are times of the chosen partition, which comes first") {
  ClusterProfile cluster = equal_devices({.count = 3});
  cluster.devices[0].direct_flops_per_s *= 3;
  cluster.devices[0].winograd_flops_per_s *= 3;
  const Alternatives found = alternatives_of(deep_network(), cluster, 6);
  REQUIRE(!found.all.empty());
  CHECK(found.all.front().name == "chosen");
  CHECK(found.all.front().ratio == 1.0);
  for (const Alternative& each : found.all) {
    CAPTURE(each.name);
    REQUIRE(each.step_s);
    CHECK(*each.ratio == doctest::Approx(*each.step_s / *found.all.front().step_s));
    if (!each.exact) {
      continue;
    }
    REQUIRE(each.energy);
    CHECK(each.energy->step_s == doctest::Approx(*each.step_s));
  }
  for (const char* name : {"fewer devices", "least energy", "images, even", "images by speed"}) {
    CAPTURE(name);
    CHECK(named(found, name) != nullptr);
  }
  // The fast device gets more images, so the others wait less for each other.
  CHECK(*named(found, "images by speed")->step_s < *named(found, "images, even")->step_s);
  CHECK(!named(found, "fewer devices")->devices.empty());
}

TEST_CASE("tiles by speed beat even ones where devices differ") {
  ClusterProfile cluster = equal_devices({.count = 2});
  cluster.devices[0].direct_flops_per_s *= 4;
  cluster.devices[0].winograd_flops_per_s *= 4;
  const Network network = deep_network();
  Shorthand rows;
  rows.grid_rows = 2;
  const Alternatives found =
      compare_alternatives(network, cluster, options(1), make_partition(network, rows));
  const Alternative* even = named(found, "even tiles");
  const Alternative* uneven = named(found, "tiles by speed");
  REQUIRE(uneven != nullptr);
  CHECK(even == nullptr);  // they are what is there
  CHECK(*uneven->ratio < 1);
  CHECK(says(found, "would take"));
}

TEST_CASE("the winner's nearest rival is named, with what it spends more time on") {
  const Alternatives found = alternatives_of(deep_network(), equal_devices({.count = 4}), 4);
  CHECK(says(found, "The chosen partition wins: with \""));
}

TEST_CASE("that added devices make a shallow network slower is said beforehand") {
  const Alternatives shallow = alternatives_of(shallow_network(), equal_devices({.count = 4}), 16);
  REQUIRE(shallow.shared.size() == 4);
  for (std::size_t i = 1; i < shallow.shared.size(); ++i) {
    CHECK(shallow.shared[i].step_s > shallow.shared[i - 1].step_s);
  }
  CHECK(says(shallow, "Sharing images among 2 devices makes a step slower than among 1"));
  const ClusterProfile four = equal_devices({.count = 4, .latency_s = 1});
  const Partition alone = on_ranks(single_tile(shallow_network()), {0}, 4);
  CHECK(says(compare_alternatives(shallow_network(), four, options(16), alone),
             "It leaves 3 of 4 devices without work"));
  const Alternatives deep = alternatives_of(deep_network(), equal_devices({.count = 4}), 16);
  CHECK(!says(deep, "makes a step slower"));
}

TEST_CASE("alternatives to replicas are found whatever ties them") {
  const Network network = deep_network();
  ClusterProfile cluster = equal_devices({.count = 4});
  cluster.devices[1].direct_flops_per_s *= 2;
  Shorthand rows;
  rows.grid_rows = 2;
  const Partition one = make_partition(network, rows);
  for (const char* sync : {"every-step", "local:4", "parameter-rank:0", "gossip"}) {
    CAPTURE(sync);
    const Partition chosen = replicated(one, {2, parse_synchronisation(sync)}, 4);
    const Alternatives found =
        compare_alternatives(network, cluster, options(8), chosen, DataLocation{{9, 9, 9, 9}, 100});
    CHECK(named(found, "images, even") != nullptr);
    CHECK(named(found, "images, even")->exact);
    CHECK(named(found, "tiles by speed") != nullptr);
    CHECK(found.shared.size() == 4);
  }
}

TEST_CASE("synchronising less often is an alternative that is not exact") {
  const Alternatives found = alternatives_of(shallow_network(), equal_devices({.count = 4}), 16);
  const Alternative* replicas = named(found, "replicas, --sync local:8");
  REQUIRE(replicas != nullptr);
  CHECK(!replicas->exact);
  CHECK(*replicas->step_s < *named(found, "images, even")->step_s);
  CHECK(found.all.front().exact);
  CHECK(alternatives_table(found).find("not exact") != std::string::npos);
  const auto json = nlohmann::json::parse(alternatives_json(found));
  for (const auto& each : json.at("alternatives")) {
    CHECK(each.at("exact") == (each.at("name") != "replicas, --sync local:8"));
  }
  // It is no rival of exact training, but is told of where it is faster.
  const ClusterProfile slow = equal_devices({.count = 4, .link_bits_per_s = 20e6});
  const Alternatives deep = alternatives_of(deep_network(), slow, 16);
  CHECK(*named(deep, "replicas, --sync local:8")->ratio < 1);
  CHECK(says(deep, "would no longer be exact"));
  CHECK(!says(deep, "wins: with \"replicas"));
  // Nothing where images cannot be divided, or where a device cannot hold the model.
  CHECK(named(alternatives_of(shallow_network(), equal_devices({.count = 3}), 16),
              "replicas, --sync local:8") == nullptr);
  SearchOptions tight = options(16);
  tight.memory_limit_bytes = Index{1} << 20U;
  CHECK(named(compare_alternatives(shallow_network(),
                                   equal_devices({.count = 4}),
                                   tight,
                                   on_ranks(single_tile(shallow_network()), {0}, 4)),
              "replicas, --sync local:8") == nullptr);
}

TEST_CASE("alternatives are compared by energy where that is the objective") {
  const Network network = deep_network();
  const ClusterProfile cluster = equal_devices({.count = 4});
  SearchOptions by_energy = options(4);
  by_energy.objective = Objective::Energy;
  const Partition chosen =
      search_partition(network, cluster, by_energy).candidates.front().partition;
  const Alternatives found = compare_alternatives(network, cluster, by_energy, chosen);
  CHECK(found.compared == Objective::Energy);
  for (const Alternative& each : found.all) {
    CAPTURE(each.name);
    CHECK(each.ratio.has_value() == each.energy.has_value());
    if (each.ratio && each.exact) {
      CHECK(*each.ratio ==
            doctest::Approx(each.energy->energy_j / found.all.front().energy->energy_j));
      CHECK(*each.ratio > 0.995);
    }
  }
  CHECK(says(found, "times the energy: "));
  CHECK(!says(found, "times as long"));
}

TEST_CASE("devices that take no part in sharing images are not idle") {
  const Alternatives found = alternatives_of(deep_network(), equal_devices({.count = 4}), 8);
  CHECK(found.shared.front().limited_by == "computing");
}

TEST_CASE("where there are fewer images than devices, gradients are reduced all the same") {
  const ClusterProfile cluster = equal_devices({.count = 3});
  const DataLocation data{{300, 300, 300}, 3072, 10};
  const Network network = shallow_network();
  const Partition alone = on_ranks(single_tile(network), {0}, 3);
  const Alternatives found = compare_alternatives(network, cluster, options(2), alone, data);
  CHECK(named(found, "images, even") == nullptr);
  const double seconds = seconds_per_sample(network, {}, cluster, 2, {}).front();
  CHECK(*named(found, "data as it lies")->epoch_s > 1.5 * 300 * seconds);
}

TEST_CASE("where samples lie unevenly, moving them is an alternative, by the epoch") {
  const DataLocation data{{9000, 500, 500}, 3072, 10};
  const Alternatives found = alternatives_of(deep_network(), equal_devices({.count = 3}), 6, data);
  const Alternative* lies = named(found, "data as it lies");
  const Alternative* moved = named(found, "data moved");
  REQUIRE(lies != nullptr);
  REQUIRE(moved != nullptr);
  CHECK(!lies->step_s);
  CHECK(*moved->epoch_s < *lies->epoch_s);
  for (const Alternative& each : found.all) {
    REQUIRE(each.epoch_s);
    CHECK(*each.ratio == doctest::Approx(*each.epoch_s / *found.all.front().epoch_s));
  }
}

TEST_CASE("alternatives as text and as JSON") {
  const Alternatives found = alternatives_of(
      shallow_network(), equal_devices({.count = 3}), 16, DataLocation{{100, 10, 10}, 784, 2});
  const std::string text = alternatives_table(found);
  CHECK(tests::widest_line(text) <= 100);
  CHECK(text.find("estimates") != std::string::npos);
  const auto json = nlohmann::json::parse(alternatives_json(found));
  CHECK(json.at("alternatives").size() == found.all.size());
  CHECK(json.at("alternatives").at(0).at("name") == "chosen");
  CHECK(json.at("alternatives").back().at("step_s").is_null());
  CHECK(json.at("images_by_devices").size() == 3);
  CHECK(json.at("why").size() == found.why.size());
  CHECK(alternatives_table({}).empty());
}

}  // namespace
