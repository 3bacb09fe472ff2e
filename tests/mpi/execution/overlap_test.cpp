// Maps large enough that layers begin while cells of their input are still under way.

#include <algorithm>

#include "tests/support/chain.h"
#include "tests/support/cuts.h"
#include "tests/support/like_one_tile.h"
#include <doctest/doctest.h>

#include "partitioner/plan/forward_parts.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::ConvolutionKernel;
using partitioner::Network;
using partitioner::Partition;
using tests::check_like_one_tile;
using tests::convolution;
using tests::Cuts;
using tests::normalized;
using tests::ranks;

const std::vector<std::pair<int, int>> kApart = {{0, 0}, {1, 1}, {2, 2}, {3, 3}};

Network wide_network(bool normalizes) {
  const auto layer = [normalizes](Index size, Index stride = 1) {
    const auto plain = convolution(5, size, stride);
    return normalizes ? normalized(plain) : plain;
  };
  return tests::chain({3, 130, 150}, {layer(3), layer(3), layer(5), layer(3, 2)});
}

// Rows, then output channels: their ranks want all of a map and compute its images in turn.
Partition in_turn(const Network& network) {
  const Cuts rows = tests::rows_cut(ranks());
  const Cuts channels = tests::channels_cut(ranks());
  return tests::partition_of(network, ranks(), kApart, {rows, channels, rows, channels});
}

bool some_layer_begins_early(const Network& network, const Partition& partition) {
  const partitioner::Plan plan = make_plan(network, partition, 1);
  for (int layer = 0; layer < network.size(); ++layer) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (!interior(network, plan, layer, rank).empty()) {
        return true;
      }
    }
  }
  return false;
}

std::vector<Cuts> cuts() {
  return {tests::rows_cut(ranks()), tests::cols_cut(std::min(ranks(), 3)), tests::grid(ranks())};
}

}  // namespace

TEST_CASE("a layer that begins while its input arrives computes what one tile does") {
  const Network network = wide_network(true);
  for (const Cuts& cut : cuts()) {
    Partition partition = tests::partition_of(network, ranks(), kApart, {cut});
    CHECK(some_layer_begins_early(network, partition) == (ranks() > 1));
    check_like_one_tile(network, partition, 1);
    const auto winograd = ConvolutionKernel::Winograd4;
    partition.kernels.assign(kApart.size(), {winograd, winograd, winograd});
    partition.kernels[2] = partition.kernels[3] = {};  // 5x5, and strides
    check_like_one_tile(network, partition, 1);
  }
}

TEST_CASE("beginning early changes no bit of the forward pass") {
  const Network network = wide_network(false);
  const auto in = tests::random_tensors(network, 1, 11);
  for (const Cuts& cut : cuts()) {
    const Partition partition = tests::partition_of(network, ranks(), kApart, {cut});
    const auto found = engine::vector_jacobian_product<float>(
        {.network = network, .partition = partition}, in, engine::Communicator::world());
    if (engine::Communicator::world().rank() == 0) {
      CHECK(found.at("output").values ==
            tests::on_one_tile<float>(network, in).at("output").values);
    }
  }
}

TEST_CASE("images that are computed in turn as they arrive are what one tile computes") {
  constexpr Index kImages = 5;
  for (const bool normalizes : {false, true}) {
    const Network network = wide_network(normalizes);
    Partition partition = in_turn(network);
    int parts = 0;
    for (const partitioner::Transfer& transfer : make_plan(network, partition, kImages).transfers) {
      parts = std::max(parts, transfer.part + 1);
    }
    CHECK(parts == (ranks() > 1 ? 4 : 1));
    check_like_one_tile(network, partition, kImages);
    const auto winograd = ConvolutionKernel::Winograd4;
    partition.kernels.assign(kApart.size(), {});
    partition.kernels[0] = partition.kernels[1] = {winograd, winograd, winograd};
    check_like_one_tile(network, partition, kImages);
  }
}

TEST_CASE("computing images in turn changes no bit of the forward pass") {
  const Network network = wide_network(false);
  const auto in = tests::random_tensors(network, 3, 11);
  const auto found = engine::vector_jacobian_product<float>(
      {.network = network, .partition = in_turn(network)}, in, engine::Communicator::world());
  if (engine::Communicator::world().rank() == 0) {
    CHECK(found.at("output").values == tests::on_one_tile<float>(network, in).at("output").values);
  }
}
