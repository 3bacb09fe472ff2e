#include "partitioner/held_weights.h"

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "partitioner/recomputation.h"
#include "partitioner/step_program.h"

namespace {

using namespace partitioner;  // NOLINT(google-build-using-namespace): a test of this namespace

using test::chain;
using test::convolution;
using test::normalized;

using Groups = std::vector<std::pair<int, int>>;
using Layers = std::vector<int>;

constexpr int kRanks = 2;
const Layers kNone = {kNoLayer, kNoLayer, kNoLayer, kNoLayer, kNoLayer};

// A pool between the second and the third convolution, and a layer that sees all cells at the end.
Network small_network() {
  return chain({3, 16, 16},
               {normalized(convolution(8, 3)),
                normalized(convolution(8, 3)),
                MaxPool{2, 2, 0},
                normalized(convolution(8, 1)),
                Connected{.outputs = 4}});
}

Partition cut(const Network& network, const Groups& groups, const test::Cuts& cuts) {
  return test::partition_of(network, kRanks, groups, {cuts});
}

Layers held(const Network& network, const Partition& partition) {
  return held_weights(network, make_plan(network, partition, 2));
}

}  // namespace

TEST_CASE("weights are held for the normalised layer whose gradients come next, pools left out") {
  const Network network = small_network();
  const Layers all = {kNoLayer, 0, kNoLayer, 1, 3};
  CHECK(held(network, cut(network, {{0, 4}}, test::images_cut(kRanks))) == all);
  CHECK(held(network, cut(network, {{0, 0}, {1, 4}}, test::images_cut(kRanks))) == all);
}

TEST_CASE("weights hide messages of maps rather than sums") {
  const Network network = small_network();
  const test::Cuts rows = test::rows_cut(kRanks);
  Partition fused = cut(network, {{0, 3}, {4, 4}}, rows);
  fused.groups[1].rows = {};
  fused.groups[1].images = {kRanks, {}};
  CHECK(held(network, fused) == Layers{kNoLayer, 0, kNoLayer, 1, kNoLayer});
  fused.groups[0].collapse = {0};
  CHECK(held(network, fused) == Layers{kNoLayer, kNoLayer, kNoLayer, 1, kNoLayer});
  // Of layers apart, 3x3 windows read what the other rank has; a pool and a 1x1 convolution do not.
  Partition apart = cut(network, {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}, rows);
  apart.groups[4].rows = {};
  apart.groups[4].images = {kRanks, {}};
  CHECK(held(network, apart) == Layers{kNoLayer, kNoLayer, kNoLayer, 1, kNoLayer});
}

TEST_CASE("weights are not held while a recomputed group runs again") {
  const Network network = small_network();
  Partition partition = cut(network, {{0, 1}, {2, 4}}, test::images_cut(kRanks));
  partition.groups[0].recompute = true;
  CHECK(held(network, partition) == Layers{kNoLayer, 0, kNoLayer, kNoLayer, 3});
}

TEST_CASE("weights are held for nobody where one rank has all, or nothing is normalised") {
  const Network network = small_network();
  CHECK(held(network, test::partition_of(network, 1, {{0, 4}}, {{}})) == kNone);
  const Network plain =
      chain({3, 16, 16}, {convolution(8, 3), convolution(8, 3), convolution(8, 3)});
  CHECK(held(plain, cut(plain, {{0, 2}}, test::images_cut(kRanks))) ==
        Layers{kNoLayer, kNoLayer, kNoLayer});
}

TEST_CASE("weights are held only where a layer reads nothing but the one before") {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, normalized(convolution(8, 3)), {kImage});
  add_layer(network, normalized(convolution(8, 3)), {0});
  add_layer(network, normalized(convolution(8, 3)), {0});
  add_layer(network, normalized(convolution(8, 3)), {2});
  CHECK(held(network, cut(network, {{0, 3}}, test::images_cut(kRanks))) ==
        Layers{kNoLayer, 0, kNoLayer, 2});
}

TEST_CASE("a step computes held weights between sending sums and waiting for those of others") {
  const Network network = small_network();
  const Plan plan = make_plan(network, cut(network, {{0, 4}}, test::images_cut(kRanks)), 2);
  const ClusterProfile cluster = equal_devices({.count = kRanks});
  std::vector<StepAction::Kind> kinds;  // from the sums of layer 1 being sent to their arrival
  bool on_their_way = false;
  for (const StepAction& action :
       step_program(network, plan, cluster, {.passes = 1, .has_loss = false}).actions) {
    const bool sums = action.part == StepPart::BackwardStatistics && action.layer == 1;
    on_their_way = on_their_way || sums;
    if (on_their_way) {
      kinds.push_back(action.kind);
    }
    if (sums && action.kind == StepAction::Kind::Finish) {
      break;
    }
    if (on_their_way && action.kind == StepAction::Kind::Compute) {
      CHECK(action.layer == 3);
      CHECK(action.seconds[0] > 0);
    }
  }
  using Kind = StepAction::Kind;
  CHECK(kinds == std::vector<Kind>{Kind::Start, Kind::Compute, Kind::Finish});
}
