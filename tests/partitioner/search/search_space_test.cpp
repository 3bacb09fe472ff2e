#include "partitioner/search/search_space.h"

#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

}  // namespace

TEST_CASE("bands share images out to devices of which there are no multiple") {
  Network network;
  network.image = {8, 38, 38};
  add_layer(network, Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  const std::vector<ConvolutionKernels> kernels = choose_kernels(network, KernelRule::Winograd);
  const auto banded = [&](const std::vector<double>& speeds, Index batch) {
    std::vector<Group> groups;
    for (const Arrangement& of : arrangements(speeds, batch)) {
      if (!of.bands.empty() && of.ranks.size() == speeds.size()) {
        const std::optional<Group> group = arranged_group(network, 0, 0, of, batch);
        REQUIRE(group);
        groups.push_back(cut_on_tiles(network, kernels, of, *group).value_or(*group));
        Partition partition;
        partition.network = fingerprint(network);
        partition.ranks = static_cast<int>(speeds.size());
        partition.groups = {groups.back()};
        validate(partition, network, batch, "bands");
      }
    }
    return groups;
  };
  const std::vector<double> six(6, 1.0);
  CHECK(banded(six, 1).empty());
  CHECK(banded(six, 3).empty());
  const std::vector<Group> fours = banded(six, 4);
  REQUIRE(fours.size() == 2);
  CHECK(fours[0].bands == std::vector<Cut>{{4, {}}, {2, {}}});
  CHECK(fours[0].rows.boundaries == std::vector<Index>{0, 28, 38});  // 7 and 2 times 3 tiles
  CHECK(fours[1].bands == std::vector<Cut>{{2, {}}, {1, {}}});
  CHECK(fours[1].cols.parts == 2);
  // Of unequal devices once by their number and once by their speeds.
  const std::vector<Group> unequal = banded({3, 1, 1}, 2);
  REQUIRE(unequal.size() == 2);
  CHECK(unequal[0].bands == std::vector<Cut>{{2, {}}, {1, {}}});
  CHECK(unequal[1].bands == std::vector<Cut>{{2, {0, 1, 2}}, {1, {}}});
  CHECK(unequal[1].rows.boundaries.at(1) > unequal[0].rows.boundaries.at(1));
}

TEST_CASE("boundaries lie on the grid of Winograd's tiles where that shares them out more evenly") {
  Network network;
  network.image = {8, 152, 76};
  add_layer(network, Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  const auto cut = [&network](int last, Index rows, Index cols, std::vector<double> weights = {}) {
    Arrangement arrangement{1, 1, rows, cols, {}, std::move(weights)};
    arrangement.ranks.resize(static_cast<std::size_t>(rows * cols));
    const std::optional<Group> equal = arranged_group(network, 0, last, arrangement, 1);
    REQUIRE(equal);
    return cut_on_tiles(
        network, choose_kernels(network, KernelRule::Winograd), arrangement, *equal);
  };
  // 38 tiles high: equal rows have 13, 14 and 13 of them.
  const std::optional<Group> thirds = cut(0, 3, 1);
  REQUIRE(thirds);
  CHECK(thirds->rows.boundaries == std::vector<Index>{0, 52, 100, 152});
  CHECK(thirds->cols == Cut{});
  // 19 tiles wide: some part has 7 in any case.
  CHECK(!cut(0, 1, 3));
  // The pool halves all: 8 rows of its output come from 4 tiles.
  const std::optional<Group> pooled = cut(1, 8, 1);
  REQUIRE(pooled);
  for (const Index boundary : pooled->rows.boundaries) {
    CHECK(boundary % 2 == 0);
  }
  // Three quarters of 38 tiles.
  const std::optional<Group> unequal = cut(0, 2, 1, {3, 1});
  CHECK((!unequal || unequal->rows.boundaries[1] % 4 == 0));
  Arrangement halves{1, 1, 2, 1, {0, 1}, {}};
  const std::optional<Group> equal = arranged_group(network, 0, 0, halves, 1);
  CHECK(!cut_on_tiles(network, {}, halves, *equal));  // direct kernels have no tiles
}
