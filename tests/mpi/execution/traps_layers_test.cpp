// The traps of tiled training that single kinds of layers hold, as those of
// traps_geometry_test.cpp.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/like_one_tile.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Communicator;
using partitioner::Activation;
using partitioner::Convolution;
using partitioner::MapShape;
using partitioner::MaxPool;
using partitioner::Network;
using tests::chain;
using tests::channels_cut;
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
    "max-pool at the border of the image ignores what is outside, also where all values are "
    "negative") {
  const Network network = chain({3, 9, 7}, {MaxPool{3, 2, 3}, MaxPool{3, 1, 2}});
  NamedTensors in = tests::random_tensors(network, 2, 3);
  for (double& value : in.at("input").values) {
    value = -1 - std::abs(value);
  }
  for (const Cuts& cuts : {rows_cut(ranks()), cols_cut(ranks()), tests::grid(ranks())}) {
    const NamedTensors found =
        check_like_one_tile(network, tests::fused(network, ranks(), cuts), 2, in);
    for (const auto& [name, tensor] : found) {
      if (name == "output") {
        CHECK(*std::max_element(tensor.values.begin(), tensor.values.end()) <= -1);
      }
    }
  }
}

// What max-pool's gradient must be on a map of equal values: all of it to the first cell of each
// window, clipped to the map.
std::vector<double> gradient_of_ties(const MaxPool& pool,
                                     const MapShape& in,
                                     const MapShape& out,
                                     const std::vector<double>& gradient) {
  std::vector<double> result(static_cast<std::size_t>(in.volume()));
  for (Index i = 0; i < out.volume(); ++i) {
    const Index channel = i / (out.rows * out.cols);
    const Index row =
        std::max<Index>(0, i / out.cols % out.rows * pool.stride.rows - pool.padding.rows / 2);
    const Index col = std::max<Index>(0, i % out.cols * pool.stride.cols - pool.padding.cols / 2);
    result[static_cast<std::size_t>((channel * in.rows + row) * in.cols + col)] +=
        gradient[static_cast<std::size_t>(i)];
  }
  return result;
}

TEST_CASE(
    "ties in max-pool go to the first cell in raster order of the whole map, also between tiles") {
  const MaxPool pool{3, 2, 2};
  const Network network = chain({2, 12, 10}, {pool});
  NamedTensors in = tests::random_tensors(network, 1, 4);
  std::fill(in.at("input").values.begin(), in.at("input").values.end(), 0.5);
  for (const Cuts& cuts : {rows_cut(ranks()), cols_cut(ranks()), tests::grid(ranks())}) {
    const NamedTensors found =
        check_like_one_tile(network, tests::fused(network, ranks(), cuts), 1, in);
    if (Communicator::world().rank() == 0) {
      CHECK(tests::largest_difference(
                found.at("input_gradient"),
                {found.at("input_gradient").shape,
                 gradient_of_ties(
                     pool, network.image, network.shape(0), in.at("output_gradient").values)}) <
            1e-14);
    }
  }
}

TEST_CASE("cells that two tiles compute pick the same argmax among equal values") {
  // Upsampling makes windows full of equal values, which the second pool's tiles compute twice.
  const Network network =
      chain({2, 6, 5},
            {partitioner::Upsample{2, 1}, MaxPool{3, 1, 2}, MaxPool{2, 1, 1}, convolution(3, 3)});
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())));
  check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
}

TEST_CASE("slopes of activations apply at every layer of a group") {
  for (const Activation activation : {Activation::Relu,
                                      Activation::Leaky,
                                      Activation::Relu6,
                                      Activation::Elu,
                                      Activation::Logistic,
                                      Activation::Tanh,
                                      Activation::Swish,
                                      Activation::Mish,
                                      Activation::Ramp}) {
    INFO("activation ", activation_name(activation));
    const Network network = chain({2, 9, 9},
                                  {convolution(4, 3, 1, activation),
                                   normalized(convolution(3, 3, 1, activation)),
                                   convolution(4, 1, 1, activation),
                                   convolution(2, 3, 1, activation)});
    check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
  }
}

TEST_CASE(
    "statistics count each cell once, also cells that no later layer requires and cells computed "
    "twice") {
  // Two of three rows and columns are skipped by the second layer; the third computes halos.
  const Network network = chain({3, 17, 14},
                                {normalized(convolution(4, 3)),
                                 normalized(convolution(4, 1, 3)),
                                 normalized(convolution(3, 3))});
  const NamedTensors in = tests::random_tensors(network, 2, 11);
  check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())), 2, in);
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())), 2, in);
  const Network pooled =
      chain({3, 15, 15}, {normalized(convolution(4, 3)), MaxPool{1, 4, 0}, convolution(3, 3)});
  check_like_one_tile(pooled, tests::fused(pooled, ranks(), tests::grid(ranks())));
}

double sum_of_channel(const NamedTensor& tensor, Index channel) {
  double sum = 0;
  const Index cells = tensor.shape[2] * tensor.shape[3];
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    if (static_cast<Index>(i) / cells % tensor.shape[1] == channel) {
      sum += tensor.values[i];
    }
  }
  return sum;
}

TEST_CASE("gradients of bias and of shift are summed over ranks, and exactly once") {
  // Below a linear activation both are the sum of the output's gradient.
  for (const bool batch_normalize : {false, true}) {
    Convolution layer = convolution(5, 3, 1, Activation::Linear);
    layer.batch_normalize = batch_normalize;
    const Network network = chain({3, 10, 9}, {layer});
    const NamedTensors in = tests::random_tensors(network, 3, 5);
    for (const Cuts& cuts : {tests::grid(ranks()), images_cut(ranks()), channels_cut(ranks())}) {
      const NamedTensors found =
          check_like_one_tile(network, tests::fused(network, ranks(), cuts), 3, in);
      for (const auto& [name, tensor] : found) {
        for (std::size_t k = 0; name == "layers.0.bias" && k < 5; ++k) {
          CHECK(tensor.values[k] ==
                doctest::Approx(sum_of_channel(in.at("output_gradient"), static_cast<Index>(k)))
                    .epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("an average over a map whose tiles are cut to nothing is computed by the others") {
  const Network network =
      chain({3, 6, 6}, {convolution(4, 3), partitioner::AvgPool{}, MaxPool{1, 1, 0}});
  check_like_one_tile(network, tests::fused(network, ranks(), cols_cut(ranks())));
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())));
}

// Three branches of one map, joined: 4 + 6 + 4 channels, and a slice of each half.
Network branches() {
  Network network = chain({3, 8, 9}, {convolution(4, 3)});
  add_layer(network, convolution(6, 3), {0});
  add_layer(network, convolution(4, 1), {0});
  add_layer(network, partitioner::Route{}, {0, 1, 2, 0});
  add_layer(network, partitioner::Route{2, 1}, {1, 3});
  add_layer(network, convolution(5, 3), {4});
  return network;
}

TEST_CASE("a route across a channel cut requires nothing of inputs that lie in other tiles") {
  const Network network = branches();
  check_like_one_tile(network, tests::fused(network, ranks(), channels_cut(ranks())));
  check_like_one_tile(network,
                      tests::partition_of(network,
                                          ranks(),
                                          {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}},
                                          {channels_cut(ranks())}));
  check_like_one_tile(
      network,
      tests::partition_of(network,
                          ranks(),
                          {{0, 2}, {3, 3}, {4, 5}},
                          {tests::grid(ranks()), channels_cut(ranks()), tests::grid(ranks())}));
}

TEST_CASE("a map that several groups read arrives at each, and their gradients add up") {
  const Network network = branches();
  check_like_one_tile(network,
                      tests::partition_of(network,
                                          ranks(),
                                          {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 5}},
                                          {rows_cut(ranks()),
                                           cols_cut(ranks()),
                                           images_cut(ranks()),
                                           channels_cut(ranks()),
                                           rows_cut(ranks())}));
}

TEST_CASE("a shortcut between maps of different shape is cut like any layer") {
  Network network = chain({3, 12, 8}, {convolution(4, 3), convolution(6, 3, 2), convolution(3, 3)});
  add_layer(network,
            partitioner::Shortcut{Activation::Relu, 0.5, -1.5},
            {0, 2});  // smaller source, fewer channels
  add_layer(network, partitioner::Shortcut{Activation::Swish, 1, 1}, {1, 3});  // larger source
  check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
  check_like_one_tile(
      network,
      tests::partition_of(network,
                          ranks(),
                          {{0, 1}, {2, 3}, {4, 4}},
                          {rows_cut(ranks()), cols_cut(ranks()), channels_cut(ranks())}));
}

TEST_CASE("reorg reads nearly the whole map, whatever the tile") {
  for (const bool reverse : {false, true}) {
    const Network network =
        chain({4, 6, 8}, {convolution(8, 3), partitioner::Reorg{2, reverse}, convolution(3, 3)});
    check_like_one_tile(network, tests::fused(network, ranks(), tests::grid(ranks())));
    check_like_one_tile(
        network,
        tests::partition_of(network,
                            ranks(),
                            {{0, 0}, {1, 1}, {2, 2}},
                            {tests::grid(ranks()), channels_cut(ranks()), rows_cut(ranks())}));
  }
}

TEST_CASE(
    "space_to_depth and upsample tile, also where a tile's edge is inside one of their cells") {
  const Network network = chain({3, 8, 10},
                                {convolution(3, 3),
                                 partitioner::SpaceToDepth{2},
                                 convolution(4, 3),
                                 partitioner::Upsample{3, 0.5}});
  const Cuts uneven{{}, {}, tests::small_pieces(ranks(), 5, 12), {}};
  check_like_one_tile(network, tests::fused(network, ranks(), uneven));
  check_like_one_tile(
      network,
      tests::partition_of(network,
                          ranks(),
                          {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
                          {cols_cut(ranks()), channels_cut(ranks()), cols_cut(ranks()), uneven}));
}

TEST_CASE(
    "channels cut inside a fused group share out the filters of its last convolution and what is "
    "pointwise after it") {
  const Network network = chain({3, 9, 8},
                                {convolution(8, 3),
                                 normalized(convolution(14, 3)),
                                 Convolution{.filters = 14,
                                             .size = 3,
                                             .padding = 1,
                                             .groups = 14,
                                             .batch_normalize = true,
                                             .activation = Activation::Elu},
                                 MaxPool{2, 2, 1}});
  check_like_one_tile(network, tests::fused(network, ranks(), channels_cut(ranks())));
  const Cuts uneven{{}, tests::small_pieces(ranks(), 3, 14), {}, {}};
  check_like_one_tile(
      network,
      tests::partition_of(network, ranks(), {{0, 0}, {1, 3}}, {tests::grid(ranks()), uneven}));
}

TEST_CASE("filters of a grouped convolution may be cut between and inside its groups") {
  const Network network = chain(
      {6, 7, 8},
      {Convolution{
           .filters = 12, .size = 3, .padding = 1, .groups = 3, .activation = Activation::Tanh},
       convolution(4, 1)});
  for (const Index piece : {2, 3, 4}) {
    const Cuts cuts{{}, tests::small_pieces(ranks(), piece, 12), {}, {}};
    check_like_one_tile(
        network,
        tests::partition_of(network, ranks(), {{0, 0}, {1, 1}}, {cuts, rows_cut(ranks())}));
  }
}

TEST_CASE("softmax runs that end inside a channel are normalised whole") {
  // Two runs over three channels: channel 1 belongs to both.
  const Network network =
      chain({3, 4, 6}, {convolution(3, 3), partitioner::Softmax{2, false, 2.0}});
  check_like_one_tile(network, tests::fused(network, ranks(), channels_cut(std::min(ranks(), 3))));
  check_like_one_tile(network, tests::fused(network, ranks(), rows_cut(ranks())));
  check_like_one_tile(
      network,
      tests::partition_of(
          network, ranks(), {{0, 0}, {1, 1}}, {rows_cut(ranks()), channels_cut(ranks())}));
  const Network spatial = chain({3, 4, 6}, {convolution(5, 3), partitioner::Softmax{1, true, 1.0}});
  check_like_one_tile(spatial, tests::fused(spatial, ranks(), tests::grid(ranks())));
}

TEST_CASE("a dense layer gathers what its tiles require, and its outputs may be cut") {
  const Network network = chain({3, 6, 7},
                                {convolution(4, 3),
                                 partitioner::Connected{9, true, Activation::Leaky},
                                 partitioner::Connected{5, false, Activation::Linear},
                                 partitioner::Softmax{}});
  const std::vector<std::pair<int, int>> groups{{0, 0}, {1, 1}, {2, 2}, {3, 3}};
  check_like_one_tile(network,
                      tests::partition_of(network,
                                          ranks(),
                                          groups,
                                          {tests::grid(ranks()),
                                           channels_cut(ranks()),
                                           channels_cut(ranks()),
                                           images_cut(ranks())}),
                      32);
  check_like_one_tile(
      network,
      tests::partition_of(network, ranks(), groups, {tests::grid(ranks()), images_cut(ranks())}),
      32);
}

}  // namespace
