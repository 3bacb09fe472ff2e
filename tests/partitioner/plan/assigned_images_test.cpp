// Which rank assigns the objects of an image, and what travels for it.

#include "partitioner/plan/assigned_images.h"

#include "tests/support/cuts.h"
#include "tests/support/random_network.h"
#include <doctest/doctest.h>

#include "partitioner/plan/transfers.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace)

namespace {

Network two_scales(Index most_boxes) {
  Network network;
  network.image = {3, 32, 48};
  const YoloxHead head{.classes = 2, .most_boxes = most_boxes};
  add_layer(network, Convolution{.filters = 7, .stride = 4}, {kImage});
  add_layer(network, head, {0});
  add_layer(network, Convolution{.filters = 7, .stride = 2}, {0});
  add_layer(network, head, {2});
  return network;
}

}  // namespace

TEST_CASE("each image is assigned once, by a rank that owns as much of it as any") {
  const Network network = two_scales(90);
  for (int seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    tests::Draw draw(static_cast<std::uint64_t>(seed));
    const int ranks = 1 + seed % 7;
    const Index batch = 1 + seed % 5;
    const Plan plan =
        make_plan(network, tests::random_partition(draw, network, batch, ranks), batch);
    CHECK(check(network, plan).empty());
    const auto cells = [&](int rank, Index image) {
      Index sum = 0;
      for (const int head : {1, 3}) {
        Region owned = plan.tile(head, rank).owned;
        owned.images = intersect(owned.images, {image, image + 1});
        sum += owned.empty() ? 0 : owned.rows.size() * owned.cols.size();
      }
      return sum;
    };
    Index next = 0;
    for (const AssignedImages& images : assigned_images(network, plan)) {
      CHECK(images.images.begin == next);
      for (next = images.images.begin; next < images.images.end; ++next) {
        for (int other = 0; other < ranks; ++other) {
          CHECK(cells(images.rank, next) >= cells(other, next));
        }
      }
    }
    CHECK(next == batch);
  }
}

TEST_CASE("room is for as many candidates as objects can have, and for the cells that there are") {
  for (const auto& [most_boxes, cells] : {std::pair<Index, Index>{90, 48}, {2, 18}}) {
    const Network network = two_scales(most_boxes);
    const Partition partition = tests::fused(network, 2, tests::rows_cut(2));
    const Plan plan = make_plan(network, partition, 1);
    Index sent = 0;
    Index answered = 0;
    for (const Transfer& transfer : plan.transfers) {
      const bool answers = transfer.kind == TransferKind::Assignments;
      if (transfer.subject != 1 || (transfer.kind != TransferKind::Candidates && !answers)) {
        continue;
      }
      for_each_message(plan, transfer, [&](int, int, const Payload& payload) {
        (answers ? answered : sent) += message_bytes(plan, transfer, payload, 4);
      });
    }
    CHECK(sent == cells * 7 * 4);
    CHECK(answered == cells * 4);
  }
}
