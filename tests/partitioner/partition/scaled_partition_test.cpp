#include "partitioner/partition/scaled_partition.h"

#include <vector>

#include <doctest/doctest.h>

#include "partitioner/network/input_sizes.h"

namespace tessera::partitioner {

namespace {

Network two_convolutions(const InputSize& size) {
  Network network;
  network.image = {3, size.rows, size.cols};
  add_layer(network, Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  add_layer(network, Convolution{.filters = 8, .size = 3, .stride = 2, .padding = 1}, {0});
  return network;
}

Partition cut(const Network& network, const Cut& rows, const Cut& cols) {
  Partition partition = single_tile(network);
  partition.ranks = static_cast<int>(rows.parts * cols.parts);
  Group& group = partition.groups.front();
  group.rows = rows;
  group.cols = cols;
  group.ranks.clear();
  for (int rank = 0; rank < partition.ranks; ++rank) {
    group.ranks.push_back(rank);
  }
  return partition;
}

}  // namespace

TEST_CASE("equal tiles stay as equal as can be at another size") {
  const Network from = two_convolutions({26, 26});  // the last map has 13 rows and columns
  const Network to = two_convolutions({38, 22});
  const Partition partition = cut(from, {3, {0, 4, 8, 13}}, {2, {}});
  const Partition there = scaled(partition, from, to);
  CHECK(there.groups[0].rows.boundaries == cut_boundaries({3, {}}, 19));
  CHECK(there.groups[0].cols == Cut{2, {}});
  CHECK_NOTHROW(validate(there, to, 1, "test"));
}

TEST_CASE("uneven tiles keep their share of the map") {
  const Network from = two_convolutions({40, 40});
  const Network to = two_convolutions({60, 30});
  const Partition partition = cut(from, {3, {0, 2, 13, 20}}, {3, {0, 0, 5, 20}});
  const Partition there = scaled(partition, from, to);
  CHECK(there.groups[0].rows.boundaries == std::vector<Index>{0, 3, 20, 30});
  CHECK(there.groups[0].cols.boundaries == std::vector<Index>{0, 0, 4, 15});
  CHECK(there.network == fingerprint(to));
  CHECK_NOTHROW(validate(there, to, 1, "test"));
  CHECK(scaled(partition, from, from) == partition);
}

}  // namespace tessera::partitioner
