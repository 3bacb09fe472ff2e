#include "partitioner/plan/image_shares.h"

#include <numeric>
#include <utility>

#include "tests/support/cuts.h"
#include "tests/support/random_network.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::Network;
using partitioner::Partition;
using partitioner::Plan;

Network classifier() {
  Network network;
  network.image = {3, 9, 8};
  add_layer(
      network,
      partitioner::Convolution{.filters = 4, .size = 3, .padding = 1, .batch_normalize = true},
      {partitioner::kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, partitioner::Connected{.outputs = 3}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

Partition by_images(const Network& network, const std::vector<Index>& most) {
  const auto ranks = static_cast<int>(most.size());
  return with_image_shares(
      tests::partition_of(network, ranks, {{0, 1}, {2, 3}}, {tests::images_cut(ranks)}),
      most,
      "--data-map");
}

Plan plan_of_shares(const Network& network, const std::vector<Index>& most) {
  return make_plan(
      network, by_images(network, most), std::accumulate(most.begin(), most.end(), Index{0}));
}

}  // namespace

TEST_CASE("images of fewer than the most that ranks may have are regions of a plan for these") {
  const Network network = classifier();
  const std::vector<Index> images = {2, 1, 4};
  Plan plan = plan_of_shares(network, {3, 5, 4});
  set_images(network, images, plan);
  const Plan expected = plan_of_shares(network, images);
  CHECK(plan.batch == 7);
  for (int map = partitioner::kImage; map < network.size(); ++map) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      CAPTURE(map);
      CAPTURE(rank);
      CHECK(plan.tile(map, rank).owned == expected.tile(map, rank).owned);
      CHECK(plan.tile(map, rank).computed == expected.tile(map, rank).computed);
      CHECK(plan.tile(map, rank).backward == expected.tile(map, rank).backward);
      CHECK(image_region(network, plan, rank) == image_region(network, expected, rank));
    }
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(plan.layers[rank] == expected.layers[rank]);
    for (const partitioner::BufferIndex i : plan.buffers[rank].indices()) {
      CHECK(plan.buffers[rank][i].region == expected.buffers[rank][i].region);
    }
  }
  REQUIRE(plan.transfers.size() == expected.transfers.size());
  for (const partitioner::TransferIndex i : plan.transfers.indices()) {
    CHECK(messages_of(plan, plan.transfers[i]) == messages_of(expected, expected.transfers[i]));
  }
  CHECK(check(network, plan).empty());
}

TEST_CASE("a rank without an image in a pass owns none and computes one that is not its own") {
  const Network network = classifier();
  Plan plan = plan_of_shares(network, {2, 2, 2});
  set_images(network, {2, 0, 1}, plan);
  CHECK(plan.tile(0, 1).owned.empty());
  CHECK(plan.tile(0, 1).backward.empty());
  CHECK(plan.tile(0, 1).computed.images == Range{2, 3});
  set_images(network, {2, 1, 0}, plan);  // of the last rank: within the batch all the same
  CHECK(plan.tile(0, 2).computed.images == Range{2, 3});
  CHECK(plan.tile(0, 1).owned.images == Range{2, 3});
  // It needs batch statistics, and contributes nothing to them.
  for (const partitioner::Transfer& transfer : plan.transfers) {
    if (transfer.kind == partitioner::TransferKind::BatchStatistics) {
      std::vector<std::pair<int, int>> ends;
      for (const partitioner::Message& message : transfer.messages) {
        ends.emplace_back(message.from, message.to);
      }
      CHECK(ends == std::vector<std::pair<int, int>>{{1, 0}, {0, 1}, {0, 2}, {1, 2}});
    }
  }
}

TEST_CASE("a rank that never has an image has no tile") {
  const Network network = classifier();
  Plan plan = plan_of_shares(network, {2, 0, 3});
  CHECK(cuts_images_alone(network, plan));
  set_images(network, {1, 0, 3}, plan);
  CHECK(plan.tile(0, 1).computed.empty());
  CHECK(plan.tile(0, 2).owned.images == Range{1, 4});
}

TEST_CASE("only plans that cut images alone have shares of images") {
  const Network network = classifier();
  const auto cut = [&](const tests::Cuts& cuts) {
    return make_plan(network, tests::partition_of(network, 2, {{0, 1}, {2, 3}}, {cuts}), 4);
  };
  CHECK(cuts_images_alone(network, cut(tests::images_cut(2))));
  CHECK(!cuts_images_alone(network, cut(tests::rows_cut(2))));
  CHECK(!cuts_images_alone(network, cut(tests::channels_cut(2))));
  const Partition mixed = tests::partition_of(
      network, 2, {{0, 1}, {2, 3}}, {tests::images_cut(2), tests::images_cut(1)});
  CHECK(!cuts_images_alone(network, make_plan(network, mixed, 4)));
}

TEST_CASE("a partition that cuts more than images is refused, and says what to do") {
  const Network network = classifier();
  const auto error_of = [&](const Partition& partition) {
    return tests::input_error_of([&] { (void)with_image_shares(partition, {2, 2}, "--data-map"); });
  };
  const auto cut = [&](const tests::Cuts& cuts) {
    return tests::partition_of(network, 2, {{0, 1}, {2, 3}}, {cuts});
  };
  CHECK(error_of(cut(tests::images_cut(2))).empty());
  CHECK(tests::has(error_of(cut(tests::rows_cut(2))), "layers 0 to 1 are cut into tiles"));
  CHECK(tests::has(error_of(cut(tests::channels_cut(2))), "layers 0 to 1 are cut by channels"));
  Partition read_by_one = cut(tests::images_cut(2));
  read_by_one.reader = partitioner::Reader::rank(1);
  CHECK(tests::has(error_of(read_by_one), "rank 1 reads for all"));
  CHECK(tests::has(error_of(read_by_one), "--data-parallel-from 0"));
}
