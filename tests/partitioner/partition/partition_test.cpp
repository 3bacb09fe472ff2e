#include "partitioner/partition/partition.h"

#include <algorithm>
#include <functional>
#include <string>

#include "tests/support/random_network.h"
#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace): a test of this
                                       // namespace

using tests::Draw;
using tests::has;
using tests::input_error_of;

// Convolutions and pools, then perhaps a classifier's end.
Network random_network(Draw& draw) {
  Network network;
  network.image = {draw.between(1, 4), draw.between(6, 40), draw.between(6, 40)};
  const Index depth = draw.between(1, 9);
  for (Index i = 0; i < depth; ++i) {
    const int input = network.size() - 1;
    const MapShape& map = network.shape(input);
    if (draw.between(0, 3) == 0 && std::min(map.rows, map.cols) >= 2) {
      add_layer(network, MaxPool{.size = 2, .stride = 2, .padding = 1}, {input});
    } else {
      const Index size = draw.between(1, 3);
      add_layer(network,
                Convolution{.filters = draw.between(1, 40), .size = size, .padding = size / 2},
                {input});
    }
  }
  if (draw.between(0, 1) == 1) {
    add_layer(network, AvgPool{}, {network.size() - 1});
    add_layer(network, Connected{.outputs = 10}, {network.size() - 1});
    add_layer(network, Softmax{}, {network.size() - 1});
    add_layer(network, Cost{}, {network.size() - 1});
  }
  return network;
}

// 4 tiled layers, then avgpool, softmax and cost.
Network small_network() {
  Network network;
  network.image = {3, 16, 12};
  add_layer(network, Convolution{.filters = 8, .size = 3, .padding = 1}, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2, .padding = 1}, {0});
  add_layer(network, Convolution{.filters = 16, .size = 3, .padding = 1}, {1});
  add_layer(network, Convolution{.filters = 40, .size = 3, .padding = 1}, {2});
  add_layer(network, AvgPool{}, {3});
  add_layer(network, Softmax{}, {4});
  add_layer(network, Cost{}, {5});
  return network;
}

}  // namespace

TEST_CASE("parts of an even cut differ by at most one cell and together are the whole") {
  for (Index extent = 0; extent < 40; ++extent) {
    for (Index parts = 1; parts < 12; ++parts) {
      const std::vector<Index> at = cut_boundaries({.parts = parts, .boundaries = {}}, extent);
      REQUIRE(static_cast<Index>(at.size()) == parts + 1);
      CHECK(at.front() == 0);
      CHECK(at.back() == extent);
      Index least = extent;
      Index most = 0;
      for (std::size_t i = 1; i < at.size(); ++i) {
        least = std::min(least, at[i] - at[i - 1]);
        most = std::max(most, at[i] - at[i - 1]);
      }
      CHECK(least >= 0);
      CHECK(most - least <= 1);
    }
  }
}

TEST_CASE("given boundaries are kept as they are") {
  const std::vector<Index> uneven = {0, 1, 1, 7};
  CHECK(cut_boundaries({.parts = 3, .boundaries = uneven}, 7) == uneven);
}

TEST_CASE("a fingerprint depends on every number that geometry depends on, and on nothing else") {
  const Network network = small_network();
  const std::string print = fingerprint(network);
  CHECK(print.size() == 16);
  CHECK(print == fingerprint(small_network()));

  const std::vector<std::function<void(Network&)>> changes = {
      [](Network& n) { n.image.rows = 17; },
      [](Network& n) { std::get<Convolution>(n.layers[0].operation).filters = 9; },
      [](Network& n) { std::get<Convolution>(n.layers[0].operation).size = 5; },
      [](Network& n) { std::get<Convolution>(n.layers[0].operation).stride = 2; },
      [](Network& n) { std::get<Convolution>(n.layers[0].operation).padding = 0; },
      [](Network& n) { std::get<Convolution>(n.layers[2].operation).groups = 2; },
      [](Network& n) { std::get<Convolution>(n.layers[2].operation).batch_normalize = true; },
      [](Network& n) {
        std::get<Convolution>(n.layers[2].operation).activation = Activation::Mish;
      },
      [](Network& n) { std::get<MaxPool>(n.layers[1].operation).padding = 0; },
      [](Network& n) { std::get<Softmax>(n.layers[5].operation).spatial = true; },
      [](Network& n) { n.layers[5].operation = Dropout{}; },
      [](Network& n) { n.layers[3].inputs = {1}; },
      [](Network& n) { n.layers[3].output.channels = 41; },
      [](Network& n) { n.layers.pop_back(); },
  };
  std::vector<std::string> prints = {print};
  for (const auto& change : changes) {
    Network changed = network;
    change(changed);
    prints.push_back(fingerprint(changed));
  }
  std::sort(prints.begin(), prints.end());
  CHECK(std::adjacent_find(prints.begin(), prints.end()) == prints.end());

  Network same = network;
  same.layers[0].line = 12;
  std::get<Cost>(same.layers[6].operation).scale = 2;
  CHECK(fingerprint(same) == print);
}

TEST_CASE("a single tile has every layer on rank 0 and is valid") {
  Draw draw(1);
  for (int trial = 0; trial < 50; ++trial) {
    const Network network = random_network(draw);
    const Partition partition = single_tile(network);
    CHECK_NOTHROW(validate(partition, network, 3, "single tile"));
    CHECK(partition.ranks == 1);
  }
}

TEST_CASE(
    "the shorthand makes a valid partition of any network, whatever grid and starts are given") {
  Draw draw(2);
  for (int trial = 0; trial < 400; ++trial) {
    const Network network = random_network(draw);
    Shorthand shorthand{
        .grid_rows = draw.between(1, 4), .grid_cols = draw.between(1, 4), .groups = {}};
    const int tiles = static_cast<int>(shorthand.grid_rows * shorthand.grid_cols);
    shorthand.ranks = draw.between(0, 1) == 0 ? 0 : tiles + static_cast<int>(draw.between(0, 3));
    if (draw.between(0, 1) == 1) {
      shorthand.data_parallel_from = static_cast<int>(draw.between(0, network.size()));
    }
    if (draw.between(0, 1) == 1) {
      shorthand.filter_parallel_from = static_cast<int>(draw.between(0, network.size()));
    }
    if (shorthand.data_parallel_from == shorthand.filter_parallel_from) {
      shorthand.filter_parallel_from = -1;
    }
    const Partition partition = make_partition(network, shorthand);
    const Index batch = draw.between(1, 9);  // smaller than the number of ranks, too
    CHECK(input_error_of([&] { validate(partition, network, batch, "made"); }) == "");
    CHECK(partition.ranks == std::max(shorthand.ranks, tiles));
    CHECK(parse_partition(to_text(partition), "text") == partition);
  }
}

TEST_CASE("layers that read the whole map start a data-parallel tail of one group") {
  const Network network = small_network();
  const Partition partition =
      make_partition(network, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 1}}, .ranks = 5});
  REQUIRE(partition.groups.size() == 4);
  CHECK(partition.ranks == 5);
  CHECK(partition.groups[0].last == 1);
  CHECK(partition.groups[2].first == 3);  // behind the given group: a group each
  CHECK(partition.groups[2].rows.parts == 2);
  CHECK(partition.groups[2].ranks == std::vector<int>{0, 1, 2, 3});
  CHECK(partition.groups[3].first == 4);
  CHECK(partition.groups[3].last == 6);
  CHECK(partition.groups[3].images.parts == 4);
  CHECK(partition.groups[3].rows.parts == 1);
}

TEST_CASE("a map with fewer rows than the grid starts the data-parallel tail") {
  const Network network = small_network();  // 8 x 6 behind the pool
  const Partition partition =
      make_partition(network, {.grid_rows = 9, .grid_cols = 1, .groups = {}});
  REQUIRE(partition.groups.size() == 2);
  CHECK(partition.groups[1].first == 1);
  CHECK(partition.groups[1].images.parts == 9);
}

TEST_CASE("a grid of one tile cuts images over all ranks only where that is asked for") {
  const Network network = small_network();
  CHECK(make_partition(network, {.groups = {}, .ranks = 3}).groups.size() == 7);
  const Partition partition =
      make_partition(network, {.groups = {}, .data_parallel_from = 0, .ranks = 3});
  REQUIRE(partition.groups.size() == 1);
  CHECK(partition.groups[0].images.parts == 3);
}

TEST_CASE("filter cuts lie on multiples of sixteen channels where there are enough") {
  const Network network = small_network();
  const Partition partition =
      make_partition(network, {.groups = {}, .filter_parallel_from = 2, .ranks = 2});
  REQUIRE(partition.groups.size() == 6);
  CHECK(partition.groups[1].channels.parts == 1);
  CHECK(partition.groups[2].channels.parts == 2);  // 16 channels: 8 and 8
  CHECK(partition.groups[3].channels.boundaries == std::vector<Index>{0, 16, 40});
  CHECK(partition.groups[4].channels.parts == 2);  // the pool follows its input's cut
  CHECK(partition.groups[5].first == 5);           // softmax needs all channels, cost goes with it
  CHECK(partition.groups[5].last == 6);
  CHECK(partition.groups[5].images.parts == 2);
}

TEST_CASE("the shorthand recomputes the groups that it names, or all") {
  const Network network = small_network();
  const auto recomputed = [&network](const Shorthand& shorthand) {
    std::vector<std::pair<int, int>> groups;
    for (const Group& group : make_partition(network, shorthand).groups) {
      if (group.recompute) {
        groups.emplace_back(group.first, group.last);
      }
    }
    return groups;
  };
  using Groups = std::vector<std::pair<int, int>>;
  CHECK(recomputed({.groups = {{0, 1}}}).empty());
  CHECK(recomputed({.groups = {{0, 1}}, .recompute = {{0, 1}}}) == Groups{{0, 1}});
  CHECK(recomputed({.groups = {{0, 1}}, .recompute = {{0, 1}, {3, 3}}}) == Groups{{0, 1}, {3, 3}});
  CHECK(recomputed({.groups = {{0, 1}, {2, 6}}, .recompute_all = true}) == Groups{{0, 1}, {2, 6}});
}

TEST_CASE("a shorthand that does not fit the network is refused with the option's name") {
  const Network network = small_network();
  const auto refusal = [&network](const Shorthand& shorthand) {
    return input_error_of([&] { (void)make_partition(network, shorthand); });
  };
  CHECK(has(refusal({.grid_rows = 2, .grid_cols = 3, .groups = {}, .ranks = 4}),
            "--grid 2x3 needs 6 ranks, there are 4"));
  CHECK(has(refusal({.grid_rows = 0, .groups = {}}), "--grid"));
  CHECK(has(refusal({.grid_rows = Index{1} << 40, .grid_cols = Index{1} << 40, .groups = {}}),
            "--grid"));
  CHECK(has(refusal({.groups = {{1, 2}}}), "--groups"));
  CHECK(has(refusal({.groups = {{0, 2}, {4, 5}}}), "--groups"));
  CHECK(has(refusal({.groups = {{0, 2}, {2, 5}}}), "--groups"));
  CHECK(has(refusal({.groups = {{0, 7}}}), "--groups"));
  CHECK(has(refusal({.grid_rows = 2, .groups = {{0, 5}}}), "layer 4 (avgpool)"));
  CHECK(has(refusal({.groups = {{0, 3}}, .data_parallel_from = 2}), "end the group at layer 1"));
  CHECK(has(refusal({.groups = {}, .data_parallel_from = 8}), "--data-parallel-from"));
  CHECK(has(refusal({.groups = {}, .filter_parallel_from = 8}), "--filter-parallel-from"));
  CHECK(
      has(refusal({.groups = {}, .data_parallel_from = 2, .filter_parallel_from = 2}), "layer 2"));
  CHECK(has(refusal({.groups = {}, .ranks = 2, .reader = Reader::rank(2)}), "--reader"));
  CHECK(has(refusal({.groups = {{0, 1}}, .recompute = {{0, 2}}}), "--recompute: layers 0 to 2"));
  CHECK(has(refusal({.groups = {}, .recompute = {{0, 1}}}), "--recompute"));
}

TEST_CASE("grids and groups are read from the command line, nonsense is refused") {
  CHECK(parse_grid("2x3", "--grid") == std::pair<Index, Index>{2, 3});
  CHECK(parse_grid("100x100", "--grid") == std::pair<Index, Index>{100, 100});
  CHECK(parse_grid("40000x25000", "--size", kPixels) == std::pair<Index, Index>{40000, 25000});
  CHECK(has(input_error_of([] { (void)parse_grid("40000x25001", "--size", kPixels); }),
            "--size: 40000x25001 is more than 1000000000 pixels"));
  CHECK(has(input_error_of([] { (void)parse_grid("9000000000x9000000000", "--grid"); }),
            "more than 10000 tiles"));
  for (const char* bad : {"",
                          "x",
                          "2",
                          "2x",
                          "x2",
                          "0x1",
                          "2x-1",
                          "2x3x4",
                          " 2x3",
                          "2 x3",
                          "1e3x1",
                          "99999999999999999999x1",
                          "1000000x1000000"}) {
    CAPTURE(bad);
    CHECK(has(input_error_of([bad] { (void)parse_grid(bad, "--grid"); }), "--grid: "));
  }
  CHECK(parse_groups("0-3,4-7,8", "--groups") ==
        std::vector<std::pair<int, int>>{{0, 3}, {4, 7}, {8, 8}});
  for (const char* bad :
       {"", ",", "0-3,", "-3", "0-", "3-0", "0--1", "a", "0-3;4", "0-9999999999"}) {
    CAPTURE(bad);
    CHECK(has(input_error_of([bad] { (void)parse_groups(bad, "--groups"); }), "--groups: "));
  }
}

TEST_CASE("every broken partition is refused, and the message names file and group") {
  const Network network = small_network();
  const Partition sound =
      make_partition(network, {.grid_rows = 2, .grid_cols = 2, .groups = {{0, 2}}, .ranks = 5});
  REQUIRE(input_error_of([&] { validate(sound, network, 3, "p.toml"); }) == "");

  struct Fault {
    std::function<void(Partition&)> damage;
    std::string expected;
  };
  const std::string one = "group 1 (layers 3 to 3): ";
  const std::vector<Fault> faults = {
      {[](Partition& p) { p.network = "0000000000000000"; }, "another network"},
      {[](Partition& p) { p.ranks = 0; }, "0 ranks"},
      {[](Partition& p) { p.reader = Reader::rank(5); }, "reader"},
      {[](Partition& p) { p.reader = Reader::rank(-2); }, "reader"},
      {[](Partition& p) { p.groups.clear(); }, "the network's last is 6"},
      {[](Partition& p) { p.groups.pop_back(); }, "the network's last is 6"},
      {[](Partition& p) { p.groups.erase(p.groups.begin()); },
       "group 0 (layers 3 to 3): starts at layer 3"},
      {[](Partition& p) { p.groups[1].first = 2; }, "group 1 (layers 2 to 3): starts at layer 2"},
      {[](Partition& p) { p.groups[1].last = 2; }, "group 1 (layers 3 to 2): ends before"},
      {[](Partition& p) { p.groups[2].last = 7; }, "group 2 (layers 4 to 7): the network's last"},
      {[](Partition& p) { p.groups[1].rows.parts = 0; }, one + "rows is cut into 0 parts"},
      {[](Partition& p) { p.groups[1].cols.parts = Index{1} << 60; }, one + "cols is cut"},
      {[](Partition& p) {
         for (Cut* cut : {&p.groups[1].images, &p.groups[1].channels, &p.groups[1].rows}) {
           cut->parts = 1'000'000;
         }
       },
       one + "more than 1000000 tiles"},
      {[](Partition& p) {
         p.groups[1].rows.boundaries = {0, 8};
       },
       one + "rows has 2 boundaries"},
      {[](Partition& p) {
         p.groups[1].rows.boundaries = {0, 4, 9};
       },
       one + "rows is cut from 0 to 9"},
      {[](Partition& p) {
         p.groups[1].rows.boundaries = {1, 4, 8};
       },
       one + "rows is cut from 1 to 8"},
      {[](Partition& p) {
         p.groups[1].cols.boundaries = {0, 9, 6};
       },
       one + "cols has the boundary 6"},
      {[](Partition& p) {
         p.groups[2].images.boundaries = {0, 1, 1, 2, 4};
       },
       "images is cut from 0 to 4"},
      {[](Partition& p) {
         p.groups[1].ranks = {0, 1, 2};
       },
       one + "4 tiles and 3 ranks"},
      {[](Partition& p) {
         p.groups[1].bands = {{2, {}}};
       },
       one + "1 bands for 2 parts of the rows"},
      {[](Partition& p) {
         p.groups[1].bands = {{2, {}}, {1, {}}};
       },
       one + "6 tiles and 4 ranks"},
      {[](Partition& p) {
         p.groups[1].bands = {{1, {}}, {2, {0, 1, 2}}};
       },
       one + "images of a band is cut from 0 to 2, expected 0 to 3, the images of a pass"},
      {[](Partition& p) {
         p.groups[1].images = {2, {}};
         p.groups[1].bands = {{1, {}}, {1, {}}};
       },
       one + "has both images and bands"},
      {[](Partition& p) {
         p.groups[1].ranks = {0, 1, 2, 5};
       },
       one + "a tile on rank 5"},
      {[](Partition& p) {
         p.groups[1].ranks = {0, 1, 2, -1};
       },
       one + "a tile on rank -1"},
      {[](Partition& p) {
         p.groups[1].ranks = {0, 1, 2, 1};
       },
       one + "two tiles on rank 1"},
      {[](Partition& p) { p.groups[1].reduce_to_owner = {2}; }, one + "collapse names layer 2"},
      {[](Partition& p) {
         p.groups[0].reduce_to_owner = {1, 1};
       },
       "group 0 (layers 0 to 2): collapse names"},
      {[](Partition& p) {
         p.gradient_reduction = {.compression = Compression::Half,
                                 .optimizer = OptimizerStates::Replicated};
       },
       "a replicated optimizer needs the exact gradients, not half ones"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.expected);
    Partition broken = sound;
    fault.damage(broken);
    const std::string message = input_error_of([&] { validate(broken, network, 3, "p.toml"); });
    CHECK(has(message, "p.toml: "));
    CHECK(has(message, fault.expected));
  }
}

TEST_CASE("a partition of some ranks is the same on others, and comes back from there") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const tests::RandomCase random = tests::random_case(seed, 3, {});
    const std::vector<int> devices = {4, 1, 2};
    const Partition moved = on_ranks(random.partition, devices, 6);
    validate(moved, random.network, random.batch, "it");
    CHECK(moved.ranks == 6);
    for (std::size_t i = 0; i < moved.groups.size(); ++i) {
      for (std::size_t tile = 0; tile < moved.groups[i].ranks.size(); ++tile) {
        const int before = random.partition.groups[i].ranks[tile];
        CHECK(moved.groups[i].ranks[tile] == devices[static_cast<std::size_t>(before)]);
      }
    }
    CHECK(of_ranks(moved, devices) == random.partition);
    for (const int rank : busy_ranks(moved)) {
      CHECK(std::find(devices.begin(), devices.end(), rank) != devices.end());
    }
  }
}
