#include "partitioner/plan/trunk_homes.h"

#include <algorithm>

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::Convolution;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;
using partitioner::TrunkHomes;
using partitioner::TrunkPiece;

constexpr Index kHomesBatch = 4;

// Two frozen convolutions and one that learns.
Network trunk_of_two() {
  Network network;
  network.image = {3, 8, 8};
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {0});
  add_layer(network, Convolution{.filters = 2, .size = 3, .padding = 1}, {1});
  freeze(network, 1);
  return network;
}

Plan cut_trunk(const Network& network, const tests::Cuts& grid) {
  return make_plan(network,
                   tests::partition_of(network, 2, {{0, 1}, {2, 2}}, {grid, tests::images_cut(2)}),
                   kHomesBatch);
}

TEST_CASE("tiles of all images are one home, whose cells stay where they are") {
  const Network network = trunk_of_two();
  const TrunkHomes homes = trunk_homes(network, cut_trunk(network, tests::grid(2)));
  REQUIRE(homes.homes.size() == 1);
  CHECK(homes.of_image == std::vector<int>(kHomesBatch, 0));
  CHECK(kept_values(homes.homes[0], 0) + kept_values(homes.homes[0], 1) == 4 * 8 * 8);
  for (const TrunkPiece& piece : trunk_pieces(homes.homes[0], homes.homes[0])) {
    CHECK(piece.from == piece.to);
  }
}

TEST_CASE("images that ranks share have a home on each, and move as a whole") {
  const Network network = trunk_of_two();
  const TrunkHomes homes = trunk_homes(network, cut_trunk(network, tests::images_cut(2)));
  REQUIRE(homes.homes.size() == 2);
  CHECK(homes.of_image == std::vector<int>{0, 0, 1, 1});
  CHECK(kept_values(homes.homes[0], 1) == 4 * 8 * 8);  // tiles begin on the last rank
  CHECK(kept_values(homes.homes[0], 0) == 0);
  const std::vector<TrunkPiece> pieces = trunk_pieces(homes.homes[0], homes.homes[1]);
  CHECK(pieces == std::vector<TrunkPiece>{{0, 1, 0, {{0, 1}, {0, 4}, {0, 8}, {0, 8}}}});
}

TEST_CASE("a pass that is given the maps is spared what makes them, and nothing else") {
  const Network network = trunk_of_two();
  const Plan plan = cut_trunk(network, tests::grid(2));
  const auto spared = actions_of_trunk(network, plan, plan.schedule);
  for (const partitioner::ActionIndex i : plan.schedule.actions.indices()) {
    const partitioner::Action& action = plan.schedule.actions[i];
    const bool is_forward = i < plan.schedule.forward.end;
    if (action.kind == partitioner::Action::Kind::Compute) {
      CHECK(spared[i] == (is_forward && action.layer >= 0 && action.layer <= 1));
    } else {
      const partitioner::Transfer& transfer = plan.transfers[action.transfer];
      const bool of_trunk =
          transfer.kind == partitioner::TransferKind::FeatureMap && transfer.subject < 1;
      CHECK(spared[i] == (is_forward && of_trunk));
    }
  }
  const auto completed = completed_trunk_maps(network, plan.schedule);
  CHECK(std::count(completed.begin(), completed.end(), 1) == 1);
  CHECK(std::count(completed.begin(), completed.end(), partitioner::kNoMap) ==
        std::ssize(plan.schedule.actions.elements()) - 1);
}

TEST_CASE("maps of a group that is computed again cannot be kept") {
  const Network network = trunk_of_two();
  Partition partition = tests::partition_of(network, 2, {{0, 2}}, {tests::grid(2)});
  CHECK_FALSE(trunk_obstacle(network, make_plan(network, partition, kHomesBatch)));
  partition.groups[0].recompute = true;
  CHECK(trunk_obstacle(network, make_plan(network, partition, kHomesBatch)));
}

TEST_CASE("independent replicas keep no maps") {
  const Network network = trunk_of_two();
  Partition partition = tests::partition_of(network, 2, {{0, 2}}, {tests::images_cut(2)});
  CHECK_FALSE(trunk_obstacle(network, make_plan(network, partition, kHomesBatch)));
  partition.replicas = {.count = 2, .sync = {partitioner::SyncMode::Local, 4}};
  CHECK(trunk_obstacle(network, make_plan(network, partition, kHomesBatch)) ==
        "replicas are independent");
}

}  // namespace
