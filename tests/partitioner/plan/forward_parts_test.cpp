#include "partitioner/plan/forward_parts.h"

#include "tests/support/cuts.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Cuts;

struct PartsCase {
  Index size = 3;
  Index stride = 1;
  Index padding = 1;
  Cuts cuts;
};

// A layer of one cell each, then the convolution in question, in a group of its own.
Network two_layers(const PartsCase& of) {
  Network network;
  network.image = {3, 100, 131};
  add_layer(network, Convolution{.filters = 8, .size = 1}, {kImage});
  add_layer(network,
            Convolution{.filters = 16, .size = of.size, .stride = of.stride, .padding = of.padding},
            {0});
  return network;
}

Plan plan_of_cuts(const Network& network, const Cuts& cuts) {
  constexpr int kRanks = 6;
  return make_plan(network, tests::partition_of(network, kRanks, {{0, 0}, {1, 1}}, {cuts}), 2);
}

const std::vector<PartsCase> kPartsCases = {{3, 1, 1, tests::rows_cut(2)},
                                            {3, 1, 1, tests::cols_cut(2)},
                                            {3, 1, 1, {{}, {}, {2, {}}, {2, {}}}},
                                            {5, 1, 2, {{}, {}, {3, {}}, {2, {}}}},
                                            {3, 2, 1, {{}, {}, {2, {}}, {1, {}}}},
                                            {7, 3, 0, {{}, {}, {2, {}}, {1, {}}}},
                                            {4, 1, 2, {{}, {}, {3, {}}, {1, {}}}}};

}  // namespace

TEST_CASE("an interior reads what is there, and interior and border are all of a tile") {
  for (const PartsCase& of : kPartsCases) {
    CAPTURE(of.size);
    CAPTURE(of.stride);
    const Network network = two_layers(of);
    const Plan plan = plan_of_cuts(network, of.cuts);
    int found = 0;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Region inner = interior(network, plan, 1, rank);
      const Tile& tile = plan.tile(1, rank);
      if (inner.empty()) {
        continue;
      }
      ++found;
      const Region read =
          intersect(required_input(network, 1, 0, inner), whole_map(network, 0, plan.batch));
      CHECK(contains(plan.tile(0, rank).owned, read));
      CHECK(contains(tile.computed, inner));
      Index cells = inner.volume();
      for (const TilePart& part : border(tile.computed, inner)) {
        cells += part.region.volume();
        CHECK(intersect(part.region, inner).empty());
      }
      CHECK(cells == tile.computed.volume());
    }
    CHECK(found > 0);
  }
}

TEST_CASE("each row of a tile is complete once, when its last part is computed") {
  const Region computed{{0, 2}, {0, 16}, {10, 60}, {20, 90}};
  for (const Region& inner : {Region{{0, 2}, {0, 16}, {12, 56}, {48, 60}},
                              Region{{0, 2}, {0, 16}, {10, 56}, {20, 60}},
                              Region{{0, 2}, {0, 16}, {12, 60}, {20, 90}}}) {
    for (Index row = computed.rows.begin; row < computed.rows.end; ++row) {
      std::vector<TilePart> parts = border(computed, inner);
      parts.insert(parts.begin(), {inner, inner.cols == computed.cols});
      Index covered = 0;
      int ends = 0;
      for (const TilePart& part : parts) {
        if (row >= part.region.rows.begin && row < part.region.rows.end) {
          covered += part.region.cols.size();
          ends += part.ends_lines ? 1 : 0;
          CHECK(part.ends_lines == (covered == computed.cols.size()));
        }
      }
      CHECK(ends == 1);
    }
  }
}

TEST_CASE("there is no interior where nothing is under way, or little could be computed early") {
  const Network network = two_layers({});
  const Plan alone = make_plan(network, single_tile(network), 2);
  CHECK(interior(network, alone, 1, 0).empty());
  // Rows of an image that every rank reads itself are there from the start.
  const Plan halves = plan_of_cuts(network, tests::rows_cut(2));
  CHECK(interior(network, halves, 0, 5).empty());
  const Plan narrow = plan_of_cuts(network, tests::cols_cut(6));
  CHECK(interior(network, narrow, 1, 3).empty());
}

TEST_CASE("cells that come sooner than filters are transformed again are waited for") {
  constexpr Index kFew = 16;
  constexpr Index kMany = 256;
  constexpr Index kTooMany = 1024;  // to keep all of them transformed
  const auto begins_early = [](Index channels, Index filters, KernelRule rule) {
    Network network;
    network.image = {3, 100, 131};
    add_layer(network, Convolution{.filters = channels, .size = 1}, {kImage});
    add_layer(network, Convolution{.filters = filters, .size = 3, .padding = 1}, {0});
    Partition partition = tests::partition_of(network, 2, {{0, 0}, {1, 1}}, {tests::cols_cut(2)});
    partition.kernels = choose_kernels(network, rule);
    return !interior(network, make_plan(network, partition, 2), 1, 0).empty();
  };
  CHECK(begins_early(kFew, kFew, KernelRule::Winograd));
  CHECK(begins_early(kFew, kMany, KernelRule::Winograd));
  // Two images' 100 cells for each channel come before the filters are there again.
  CHECK(!begins_early(kTooMany, kMany, KernelRule::Winograd));
  CHECK(!begins_early(kFew, kTooMany, KernelRule::Winograd));
  CHECK(begins_early(kTooMany, kMany, KernelRule::Direct));
}

namespace {

// Rows, then output channels, for which a rank wants all of the map.
struct InTurn {
  Index channels = 8;
  Index filters = 16;
  Index side = 40;
  Index images = 6;
  KernelRule rule = KernelRule::Direct;
};

Network two_cuts(const InTurn& of) {
  Network network;
  network.image = {3, of.side, of.side};
  add_layer(network, Convolution{.filters = of.channels, .size = 1}, {kImage});
  add_layer(network, Convolution{.filters = of.filters, .size = 3, .padding = 1}, {0});
  return network;
}

Plan plan_in_turn(const Network& network, Index images, KernelRule rule = KernelRule::Direct) {
  Partition partition = tests::partition_of(
      network, 4, {{0, 0}, {1, 1}}, {tests::rows_cut(4), tests::channels_cut(4)});
  partition.kernels = choose_kernels(network, rule);
  return make_plan(network, partition, images);
}

std::size_t parts_of_rank(const InTurn& of) {
  const Network network = two_cuts(of);
  return plan_in_turn(network, of.images, of.rule).layers[0][1].forward_parts.size();
}

// What the rank has of the map when transfers below `part` have come.
Index cells_there(const Plan& plan, int rank, const Region& read, int part) {
  Index cells = intersect(plan.tile(0, rank).owned, read).volume();
  for (const Transfer& transfer : plan.transfers) {
    for (const Message& message : transfer.messages) {
      if (transfer.kind == TransferKind::FeatureMap && transfer.subject == 0 &&
          transfer.part < part && message.to == rank) {
        cells += intersect(message.payload.cells(), read).volume();
      }
    }
  }
  return cells;
}

}  // namespace

TEST_CASE("images of a tile are computed in turn, each when its cells have come") {
  const Network network = two_cuts({});
  const Plan plan = plan_in_turn(network, 6);
  CHECK(check(network, plan).empty());
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Region& computed = plan.tile(1, rank).computed;
    const std::vector<TilePart> parts =
        plan.layers[static_cast<std::size_t>(rank)][1].forward_parts;
    CHECK(parts.size() == 4);
    Index image = computed.images.begin;
    for (const TilePart& part : parts) {
      Region expected = computed;
      expected.images = {image, part.region.images.end};
      CHECK(part.region == expected);
      CHECK(part.ends_lines);
      image = part.region.images.end;
      const Region read =
          intersect(required_input(network, 1, 0, part.region), whole_map(network, 0, plan.batch));
      CHECK(cells_there(plan, rank, read, part.awaits) == read.volume());
      CHECK(cells_there(plan, rank, read, part.awaits - 1) < read.volume());
    }
    CHECK(image == computed.images.end);
  }
}

TEST_CASE("the first or the last images may be there while the others are awaited") {
  const Network network = two_cuts({});
  for (const int rank : {0, 1}) {
    Partition partition =
        tests::partition_of(network, 2, {{0, 0}, {1, 1}}, {tests::images_cut(2), {}});
    partition.groups[1].ranks = {rank};
    const Plan plan = make_plan(network, partition, 6);
    CHECK(plan.layers[static_cast<std::size_t>(rank)][1].forward_parts.size() > 1);
    CHECK(check(network, plan).empty());
  }
}

TEST_CASE("images are computed all at once where turns would not hide enough") {
  CHECK(parts_of_rank({.images = 2}) == 2);
  CHECK(parts_of_rank({.images = 1}) == 1);
  CHECK(parts_of_rank({.side = 8}) == 1);  // 48 cells of an image are awaited
  // Each turn packs, or transforms, a quarter of the filters.
  CHECK(parts_of_rank({.filters = 1 << 17}) == 1);
  CHECK(parts_of_rank({.filters = 1 << 13}) == 4);
  CHECK(parts_of_rank({.filters = 1 << 13, .rule = KernelRule::Winograd}) == 4);  // keeps them
  CHECK(parts_of_rank({.channels = 40, .filters = 1 << 13, .rule = KernelRule::Winograd}) == 2);
}

TEST_CASE("a tile that is not divided is one part, computed when all of its input is there") {
  const Network network = two_cuts({});
  const auto of = [&](const Plan& plan) { return plan.layers[0][1]; };
  const Plan plan = plan_in_turn(network, 1);
  CHECK(of(plan).forward_parts == std::vector<TilePart>{{plan.tile(1, 0).computed, true, 1}});
  CHECK(!of(plan).prepares_filters);
  const Plan alone = make_plan(network, single_tile(network), 6);
  CHECK(of(alone).forward_parts == std::vector<TilePart>{{alone.tile(1, 0).computed, true, 0}});
}

TEST_CASE("filters are transformed once, while cells are under way") {
  const Network network = two_cuts({});
  CHECK(plan_in_turn(network, 1, KernelRule::Winograd).layers[0][1].prepares_filters);
  CHECK(plan_in_turn(network, 6, KernelRule::Winograd).layers[0][1].prepares_filters);
  Partition alone = single_tile(network);
  alone.kernels = choose_kernels(network, KernelRule::Winograd);
  CHECK(!make_plan(network, alone, 6).layers[0][1].prepares_filters);
}
