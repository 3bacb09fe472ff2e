// The traps of tiled training that other programs have been caught in, those of geometry: each is a
// small network, cut so that the trap is there, and compared with one tile. Cuts follow the number
// of ranks.

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/like_one_tile.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::Activation;
using partitioner::Convolution;
using partitioner::MaxPool;
using partitioner::Network;
using partitioner::Partition;
using tests::chain;
using tests::check_like_one_tile;
using tests::cols_cut;
using tests::convolution;
using tests::Cuts;
using tests::images_cut;
using tests::NamedTensor;
using tests::NamedTensors;
using tests::normalized;
using tests::ranks;
using tests::rows_cut;

TEST_CASE(
    "inside a fused group a layer sees zeros outside the image, not what could be computed there") {
  // Biases and logistic make 1/2 and more out of nothing but padding.
  const Network network = chain({2, 13, 11},
                                {convolution(5, 3, 1, Activation::Logistic),
                                 convolution(4, 5, 1, Activation::Logistic),
                                 convolution(3, 3, 1, Activation::Logistic)});
  check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())));
}

TEST_CASE("a border stays zero behind a layer that normalises in place") {
  const Network network =
      chain({2, 13, 11},
            {normalized(convolution(5, 3)), normalized(convolution(4, 3)), convolution(3, 3)});
  check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
  check_like_one_tile(
      network,
      tests::partition_of(network, ranks(), {{0, 0}, {1, 1}, {2, 2}}, {tests::grid(ranks())}));
}

TEST_CASE("images that are cut otherwise in each part of the rows are the same images") {
  // All ranks but one have an image each of the upper rows, the last all images of the others; and
  // the other way round in the next group, so that both halves of an image change hands.
  const Network network = chain({2, 14, 12},
                                {normalized(convolution(5, 3)),
                                 MaxPool{2, 2, 0},
                                 normalized(convolution(4, 3)),
                                 convolution(3, 3)});
  const auto many = static_cast<Index>(std::max(ranks() - 1, 1));
  Partition partition = tests::partition_of(network, ranks(), {{0, 1}, {2, 3}}, {Cuts{}});
  for (partitioner::Group& group : partition.groups) {
    const bool first = group.first == 0;
    group.rows = ranks() > 1 ? partitioner::Cut{2, {0, 4, 7}} : partitioner::Cut{};
    group.bands = {{first ? many : 1, {}}};
    if (ranks() > 1) {
      group.bands.push_back({first ? 1 : many, {}});
    }
    group.ranks.clear();
    for (int tile = 0; tile < static_cast<int>(group.tiles()); ++tile) {
      group.ranks.push_back(ranks() - 1 - tile);
    }
  }
  check_like_one_tile(network, partition, many);
}

TEST_CASE("uneven tiles weigh each cell alike in averages and statistics") {
  const Network network = chain({3, 14, 12},
                                {normalized(convolution(6, 3)),
                                 partitioner::AvgPool{},
                                 partitioner::Connected{4, false, Activation::Tanh}});
  const Cuts uneven{{}, {}, tests::small_pieces(ranks(), 1, 14), {}};
  check_like_one_tile(
      network,
      tests::partition_of(network, ranks(), {{0, 0}, {1, 2}}, {uneven, images_cut(ranks())}));
  const Cuts uneven_images{tests::small_pieces(ranks(), 1, 9), {}, {}, {}};
  check_like_one_tile(
      network,
      tests::partition_of(network, ranks(), {{0, 0}, {1, 2}}, {uneven_images, uneven_images}),
      9);
}

TEST_CASE("odd sizes and strides are cut by global positions") {
  for (const Index side : {11, 13, 17}) {
    const Network network =
        chain({2, side, side - 2},
              {convolution(3, 3, 2), MaxPool{3, 2, 2}, convolution(4, 2, 1), convolution(3, 5, 3)});
    for (const Cuts& cuts : {rows_cut(ranks()), cols_cut(ranks()), tests::grid(ranks())}) {
      check_like_one_tile(network, tests::fused(network, ranks(), cuts));
      check_like_one_tile(network,
                          tests::partition_of(network, ranks(), {{0, 0}, {1, 2}, {3, 3}}, {cuts}));
    }
  }
}

TEST_CASE("strides beyond the filter leave cells unread, and their gradient is zero") {
  const Network network =
      chain({2, 16, 13},
            {convolution(3, 3), Convolution{.filters = 3, .size = 2, .stride = 3, .padding = 0}});
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())));
  check_like_one_tile(network,
                      tests::partition_of(network, ranks(), {{0, 0}, {1, 1}}, {rows_cut(ranks())}));
}

TEST_CASE("a halo may be wider than the neighbour's tile, and tiles smaller than the filter") {
  const Network network =
      chain({2, 12, 9}, {convolution(3, 7), convolution(3, 5), MaxPool{5, 1, 4}});
  const Cuts slivers{{}, {}, tests::small_pieces(ranks(), 1, 12), {}};
  check_like_one_tile(network,
                      tests::partition_of(network, ranks(), {{0, 0}, {1, 1}, {2, 2}}, {slivers}));
  check_like_one_tile(network, tests::fused(network, ranks(), slivers));
  const Cuts narrow{{}, {}, {}, tests::small_pieces(ranks(), 1, 9)};
  check_like_one_tile(network,
                      tests::partition_of(network, ranks(), {{0, 0}, {1, 1}, {2, 2}}, {narrow}));
}

TEST_CASE("filters of even size have halos of different width on their two sides") {
  for (const Index size : {2, 4, 6}) {
    const Network network = chain(
        {2, 13, 10}, {convolution(3, size), convolution(3, size, 2), MaxPool{size, 1, size - 1}});
    check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
    check_like_one_tile(
        network,
        tests::partition_of(network, ranks(), {{0, 0}, {1, 1}, {2, 2}}, {tests::grid(ranks())}));
  }
}

TEST_CASE("empty tiles, idle ranks and fewer images than ranks change nothing") {
  const Network network = chain(
      {3, 8, 9},
      {normalized(convolution(4, 3)), MaxPool{2, 2, 1}, convolution(6, 3), partitioner::AvgPool{}});
  const Cuts empty_rows{{}, {}, tests::small_pieces(ranks(), 3, 4), {}};
  check_like_one_tile(network,
                      tests::partition_of(network,
                                          ranks(),
                                          {{0, 1}, {2, 2}, {3, 3}},
                                          {empty_rows, empty_rows, images_cut(ranks())}));
  const Cuts empty_cols{{}, {}, {}, tests::small_pieces(ranks(), 2, 5)};
  const Cuts empty_channels{{}, tests::small_pieces(ranks(), 5, 6), {}, {}};
  check_like_one_tile(network,
                      tests::partition_of(network,
                                          ranks(),
                                          {{0, 1}, {2, 2}, {3, 3}},
                                          {empty_cols, empty_channels, empty_channels}));
  // Only the two highest ranks work, on one image.
  const int few = std::min(ranks(), 2);
  check_like_one_tile(
      network, tests::partition_of(network, ranks(), {{0, 2}, {3, 3}}, {rows_cut(few)}), 1);
  check_like_one_tile(network, tests::fused(network, ranks(), images_cut(ranks())), 2);
}

TEST_CASE("cells of diagonal neighbours travel too") {
  // Only the corner where four tiles meet has a gradient.
  const Network network = chain({2, 8, 8}, {convolution(3, 3), convolution(3, 3)});
  NamedTensors in = tests::random_tensors(network, 1, 6);
  NamedTensor& gradient = in.at("output_gradient");
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    const std::size_t row = i / 8 % 8;
    const std::size_t col = i % 8;
    if (row < 3 || row > 4 || col < 3 || col > 4) {
      gradient.values[i] = 0;
    }
  }
  for (const auto& groups : {std::vector<std::pair<int, int>>{{0, 0}, {1, 1}},
                             std::vector<std::pair<int, int>>{{0, 1}}}) {
    check_like_one_tile(
        network, tests::partition_of(network, ranks(), groups, {tests::grid(ranks())}), 1, in);
  }
}

TEST_CASE(
    "reducing to owners at any layers of a group is exact through batch normalisation and "
    "max-pool") {
  const Network network = chain({3, 16, 13},
                                {normalized(convolution(4, 3)),
                                 MaxPool{3, 1, 2},
                                 normalized(convolution(5, 3)),
                                 MaxPool{2, 2, 1},
                                 normalized(convolution(4, 3)),
                                 convolution(3, 3)});
  Partition partition = tests::fused(network, ranks(), tests::grid(ranks()));
  const NamedTensors in = tests::random_tensors(network, 2, 21);
  for (unsigned chosen = 0; chosen < 64;
       chosen += 7) {  // some subsets of the six layers, all of them at 63
    partition.groups[0].reduce_to_owner.clear();
    for (int layer = 0; layer < network.size(); ++layer) {
      if ((chosen >> static_cast<unsigned>(layer) & 1U) != 0) {
        partition.groups[0].reduce_to_owner.push_back(layer);
      }
    }
    check_like_one_tile(network, partition, 2, in);
  }
}

TEST_CASE("one rank may read the image for all") {
  const Network network = chain({3, 12, 11}, {normalized(convolution(4, 3)), convolution(3, 3, 2)});
  Partition partition = tests::partition_of(
      network, ranks(), {{0, 0}, {1, 1}}, {tests::grid(ranks()), images_cut(ranks())});
  check_like_one_tile(network, partition);  // every rank reads
  for (int reader = 0; reader < ranks(); ++reader) {
    partition.reader = partitioner::Reader::rank(reader);
    check_like_one_tile(network, partition);
  }
}
}  // namespace
