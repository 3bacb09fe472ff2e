#include "partitioner/plan/deferred_weights.h"

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include <doctest/doctest.h>

#include "partitioner/cost/step_prices.h"
#include "partitioner/plan/recomputation.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::chain;
using tests::convolution;
using tests::normalized;

using Groups = std::vector<std::pair<int, int>>;
using Deferred = std::vector<DeferredWeights>;

constexpr int kDeferringRanks = 2;
const DeferredWeights kAtOnce = {};
const Deferred kNone(5, kAtOnce);

DeferredWeights whole(int next) {
  return {next, false};
}

DeferredWeights half(int next) {
  return {next, true};
}

// A pool between the second and the third convolution, and a layer that sees all cells at the end.
Network deferring_network() {
  return chain({3, 16, 16},
               {normalized(convolution(8, 3)),
                normalized(convolution(8, 3)),
                MaxPool{2, 2, 0},
                normalized(convolution(8, 1)),
                Connected{.outputs = 4}});
}

Partition cut(const Network& network, const Groups& groups, const tests::Cuts& cuts) {
  return tests::partition_of(network, kDeferringRanks, groups, {cuts});
}

Deferred deferred(const Network& network, const Partition& partition) {
  return deferred_weights(network, make_plan(network, partition, 2));
}

}  // namespace

TEST_CASE(
    "weights are deferred for the normalised layer whose gradients come next, pools left out") {
  const Network network = deferring_network();
  const Deferred all = {kAtOnce, whole(0), kAtOnce, whole(1), whole(3)};
  CHECK(deferred(network, cut(network, {{0, 4}}, tests::images_cut(kDeferringRanks))) == all);
  CHECK(deferred(network, cut(network, {{0, 0}, {1, 4}}, tests::images_cut(kDeferringRanks))) ==
        all);
}

TEST_CASE("half of the weights hides messages of maps where there are some as well") {
  const Network network = deferring_network();
  const tests::Cuts rows = tests::rows_cut(kDeferringRanks);
  Partition fused = cut(network, {{0, 3}, {4, 4}}, rows);
  fused.groups[1].rows = {};
  fused.groups[1].images = {kDeferringRanks, {}};
  CHECK(deferred(network, fused) == Deferred{kAtOnce, whole(0), kAtOnce, whole(1), half(3)});
  fused.groups[0].reduce_to_owner = {0};
  CHECK(deferred(network, fused) == Deferred{kAtOnce, half(0), kAtOnce, whole(1), half(3)});
  // Of layers apart, 3x3 windows read what the other rank has; a pool and a 1x1 convolution do not.
  Partition apart = cut(network, {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}, rows);
  apart.groups[4].rows = {};
  apart.groups[4].images = {kDeferringRanks, {}};
  CHECK(deferred(network, apart) == Deferred{kAtOnce, half(0), kAtOnce, whole(1), half(3)});
}

TEST_CASE("weights are not deferred while a recomputed group runs again") {
  const Network network = deferring_network();
  Partition partition = cut(network, {{0, 1}, {2, 4}}, tests::images_cut(kDeferringRanks));
  partition.groups[0].recompute = true;
  CHECK(deferred(network, partition) == Deferred{kAtOnce, whole(0), kAtOnce, kAtOnce, whole(3)});
  // Halves stay halves, so that their sum has the same bits.
  Partition rows = cut(network, {{0, 0}, {1, 4}}, tests::rows_cut(kDeferringRanks));
  rows.groups[1].rows = {};
  rows.groups[1].images = {kDeferringRanks, {}};
  CHECK(deferred(network, rows)[1] == half(0));
  rows.groups[0].recompute = true;
  CHECK(deferred(network, rows)[1] == DeferredWeights{kNoLayer, true});
}

TEST_CASE("a recomputed group of which nothing runs again changes nothing") {
  const Network network = deferring_network();
  Partition partition = cut(network, {{0, 1}, {2, 2}, {3, 4}}, tests::images_cut(kDeferringRanks));
  const Deferred kept = deferred(network, partition);
  REQUIRE(kept[3] == whole(1));
  partition.groups[1].recompute = true;  // a pool, whose map the next group's backward pass reads
  CHECK(!runs_again(network, {2, 2}));
  CHECK(deferred(network, partition) == kept);
  CHECK(runs_again(network, {0, 1}));
}

TEST_CASE("weights are deferred for nobody where one rank has all, or nothing is normalised") {
  const Network network = deferring_network();
  CHECK(deferred(network, tests::partition_of(network, 1, {{0, 4}}, {{}})) == kNone);
  const Network plain =
      chain({3, 16, 16}, {convolution(8, 3), convolution(8, 3), convolution(8, 3)});
  CHECK(deferred(plain, cut(plain, {{0, 2}}, tests::images_cut(kDeferringRanks))) ==
        Deferred(3, kAtOnce));
}

TEST_CASE("weights are deferred only where a layer reads nothing but the one before") {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, normalized(convolution(8, 3)), {kImage});
  add_layer(network, normalized(convolution(8, 3)), {0});
  add_layer(network, normalized(convolution(8, 3)), {0});
  add_layer(network, normalized(convolution(8, 3)), {2});
  CHECK(deferred(network, cut(network, {{0, 3}}, tests::images_cut(kDeferringRanks))) ==
        Deferred{kAtOnce, whole(0), kAtOnce, whole(2)});
}

TEST_CASE("halves of the cells are images, or rows of whole tiles of the kernel") {
  const auto second_half = [](Range images, Range rows, ConvolutionKernel kernel) {
    const Region all{images, {0, 8}, rows, {0, 16}};
    const WeightParts parts = weight_parts(half(0), kernel, all);
    REQUIRE(parts.at_once.size() == 1);
    REQUIRE(parts.deferred.size() == 1);
    const Region& first = parts.at_once[0];
    const Region& second = parts.deferred[0];
    CHECK(first.volume() + second.volume() == all.volume());
    CHECK(hull(first, second) == all);
    CHECK(intersect(first, second).empty());
    // The same parts in the same order where neither is deferred.
    CHECK(weight_parts({kNoLayer, true}, kernel, all).at_once == std::vector{first, second});
    return second;
  };
  const ConvolutionKernel direct = ConvolutionKernel::Direct;
  const ConvolutionKernel winograd = ConvolutionKernel::Winograd4;
  CHECK(second_half({2, 5}, {4, 7}, winograd).images == Range{4, 5});
  CHECK(second_half({0, 1}, {4, 9}, direct).rows == Range{7, 9});
  CHECK(second_half({0, 1}, {4, 17}, winograd).rows == Range{12, 17});
  CHECK(second_half({0, 1}, {6, 9}, winograd).rows == Range{8, 9});
  CHECK(second_half({0, 1}, {6, 15}, ConvolutionKernel::Winograd2).rows == Range{10, 15});
}

TEST_CASE(
    "cells that cannot be halved are summed at once, deferred ones later, all others at once") {
  const Region all{{0, 1}, {0, 8}, {5, 8}, {0, 16}};
  const auto parts =
      [](const DeferredWeights& deferred, ConvolutionKernel kernel, const Region& cells) {
        const WeightParts of = weight_parts(deferred, kernel, cells);
        return std::pair(of.at_once, of.deferred);
      };
  const std::vector<Region> none;
  const std::pair at_once(std::vector{all}, none);
  CHECK(parts(half(0), ConvolutionKernel::Winograd4, all) == at_once);
  CHECK(parts(kAtOnce, ConvolutionKernel::Direct, all) == at_once);
  CHECK(parts(whole(0), ConvolutionKernel::Direct, all) == std::pair(none, std::vector{all}));
  CHECK(parts(half(0), ConvolutionKernel::Direct, {}) == std::pair(none, none));
}

TEST_CASE("a step computes one half while maps travel, the other while batch statistics do") {
  const Network network = deferring_network();
  Partition apart =
      cut(network, {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}, tests::rows_cut(kDeferringRanks));
  apart.groups[4].rows = {};
  apart.groups[4].images = {kDeferringRanks, {}};
  const Plan plan = make_plan(network, apart, 2);
  const ClusterProfile cluster = equal_devices({.count = kDeferringRanks});
  int maps = 0;  // transfers of the gradient of layer 0, and of its batch statistics, under way
  int statistics = 0;
  std::vector<double> while_maps;
  std::vector<double> while_statistics;
  for (const PricedAction& priced : priced_step(network, plan, cluster, {}).actions) {
    const Action& action = priced.action;
    if (action.kind == Action::Kind::Compute) {
      if (maps > 0) {
        CHECK(action.layer == 1);
        while_maps.push_back(priced.seconds[0]);
      }
      if (statistics > 0) {
        CHECK(action.layer == 1);
        while_statistics.push_back(priced.seconds[0]);
      }
      continue;
    }
    const int more = action.kind == Action::Kind::Start ? 1 : -1;
    const Transfer& transfer = plan.transfers[action.transfer];
    if (transfer.subject == 0 && transfer.kind == TransferKind::MapGradient) {
      maps += more;
    } else if (transfer.subject == 0 && transfer.kind == TransferKind::StatisticsGradient) {
      statistics += more;
    }
  }
  REQUIRE(while_maps.size() == 1);
  REQUIRE(while_statistics.size() == 1);
  CHECK(while_maps[0] > 0);
  CHECK(while_statistics[0] == while_maps[0]);
}

TEST_CASE(
    "a step computes deferred weights between sending batch statistics and waiting for those of "
    "others") {
  const Network network = deferring_network();
  const Plan plan =
      make_plan(network, cut(network, {{0, 4}}, tests::images_cut(kDeferringRanks)), 2);
  const ClusterProfile cluster = equal_devices({.count = kDeferringRanks});
  using Kind = Action::Kind;
  std::vector<Kind> kinds;  // from the batch statistics of layer 1 being sent to their arrival
  bool on_their_way = false;
  for (const PricedAction& priced : priced_step(network, plan, cluster, {}).actions) {
    const Action& action = priced.action;
    const Transfer* transfer =
        action.kind == Kind::Compute ? nullptr : &plan.transfers[action.transfer];
    const bool statistics = transfer != nullptr &&
                            transfer->kind == TransferKind::StatisticsGradient &&
                            transfer->subject == 1;
    on_their_way = on_their_way || statistics;
    if (on_their_way) {
      kinds.push_back(action.kind);
    }
    if (statistics && action.kind == Kind::Finish) {
      break;
    }
    if (on_their_way && action.kind == Kind::Compute) {
      CHECK(action.layer == 3);
      CHECK(priced.seconds[0] > 0);
    }
  }
  CHECK(kinds == std::vector<Kind>{Kind::Start, Kind::Compute, Kind::Finish});
}
