#include "partitioner/plan/cut_mapping.h"

#include "tests/support/chain.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

}  // namespace

TEST_CASE("bands cut images for each part of the rows, and count tiles by bands first") {
  Group group;
  group.rows = {2, {0, 4, 6}};
  group.bands = {{3, {}}, {2, {0, 1, 3}}};
  group.cols = {2, {}};
  CHECK(group.tiles() == 10);
  const Network network = tests::chain({3, 6, 8}, {tests::convolution(5, 3)});
  const MapCut cut = cut_of_output(network, group, 3);
  const Range channels{0, 5};
  CHECK(tile_region(cut, 0) == Region{{0, 1}, channels, {0, 4}, {0, 4}});
  CHECK(tile_region(cut, 1) == Region{{0, 1}, channels, {0, 4}, {4, 8}});
  CHECK(tile_region(cut, 5) == Region{{2, 3}, channels, {0, 4}, {4, 8}});
  CHECK(tile_region(cut, 6) == Region{{0, 1}, channels, {4, 6}, {0, 4}});
  CHECK(tile_region(cut, 9) == Region{{1, 3}, channels, {4, 6}, {4, 8}});
  // The input's rows follow, the images stay.
  CHECK(tile_region(cut_of_input(network, 0, 0, cut), 6) == Region{{0, 1}, {0, 3}, {4, 6}, {0, 4}});
}
