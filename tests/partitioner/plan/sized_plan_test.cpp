#include "partitioner/plan/sized_plan.h"

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

namespace tessera::partitioner {

namespace {

Network strided() {
  Network network;
  network.image = {3, 48, 48};
  add_layer(
      network,
      Convolution{.filters = 8, .size = 3, .stride = 4, .padding = 1, .batch_normalize = true},
      {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {1});
  return network;
}

}  // namespace

TEST_CASE("plans of several sizes are plans of one partition, and take turns") {
  const Network network = strided();
  for (const auto& [rows, cols] : {std::pair<Index, Index>{2, 2}, {3, 1}, {1, 4}}) {
    Shorthand shorthand;
    shorthand.grid_rows = rows;
    shorthand.grid_cols = cols;
    shorthand.groups = {{0, 1}};
    const Partition partition = make_partition(network, shorthand);
    const Plan plan = make_plan(network, partition, 4);
    for (const Index side : {Index{32}, Index{40}, Index{48}, Index{72}}) {
      CAPTURE(side);
      const SizedPlan sized = sized_plan(network, partition, 4, {side, side});
      CHECK(size_of(sized.network.image) == InputSize{side, side});
      CHECK(check(sized.network, sized.plan).empty());
      CHECK(may_take_turns(plan, sized.plan));
    }
  }
}

TEST_CASE("where tiles become empty, plans may not take turns") {
  const Network network = strided();
  Shorthand shorthand;
  shorthand.grid_rows = 4;
  const Partition partition = make_partition(network, shorthand);
  const Plan plan = make_plan(network, partition, 1);
  CHECK_FALSE(may_take_turns(plan, sized_plan(network, partition, 1, {16, 16}).plan));
}

TEST_CASE("a size that a layer does not fit is refused with its number") {
  Network network = strided();
  add_layer(network, Connected{.outputs = 5}, {2});
  CHECK_THROWS_WITH_AS((void)sized_plan(network, single_tile(network), 1, {64, 64}),
                       doctest::Contains("64x64: layer 3 (connected): "),
                       InputError);
}

}  // namespace tessera::partitioner
