#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>

#include "engine/ops/norm/fused_pool.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ArgmaxOffset;
using engine::Tensor;
using engine::View;
using partitioner::MaxPool;
using partitioner::Network;
using tests::Draw;
using tests::PlainMap;

// One pool of a small map, refused ones left out.
Network random_pool(Draw& draw) {
  while (true) {
    Network network;
    network.image = {
        draw.among<Index>({1, 3, 7, 16, 21}), draw.between(1, 12), draw.between(1, 12)};
    try {
      add_layer(network,
                MaxPool{draw.between(1, 6), draw.between(1, 4), draw.between(0, 9)},
                {partitioner::kImage});
      return network;
    } catch (const std::invalid_argument&) {
      continue;
    }
  }
}

constexpr std::uint64_t kCases = 150;

// Values of which many are equal: the argmax depends on the order then.
PlainMap map_with_ties(const Region& whole, std::uint64_t seed) {
  PlainMap map = tests::random_map(whole, seed);
  for (double& value : map.values) {
    value = std::round(value);
  }
  return map;
}

TEST_CASE(
    "max-pool takes the largest value inside the map, and gives its gradient to the first of "
    "them") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed ", seed);
    Draw draw(seed);
    const Network network = random_pool(draw);
    const MaxPool pool = std::get<MaxPool>(network.layer(0).operation);
    PlainMap in = map_with_ties(whole_map(network, partitioner::kImage, 2), seed);
    PlainMap gradient = tests::random_map(whole_map(network, 0, 2), seed + 1);
    const Region region = tests::random_part(draw, gradient.region);
    const Region required = required_input(network, 0, 0, region);
    PlainMap expected(gradient.region);
    PlainMap expected_gradient(in.region);
    tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
      const Index argmax = naive_argmax(pool, in, n, c, row, col);
      const Index cols = in.region.cols.end;
      expected.at(n, c, row, col) = in.at(n, c, argmax / cols, argmax % cols);
      expected_gradient.at(n, c, argmax / cols, argmax % cols) += gradient.at(n, c, row, col);
    });
    const Tensor<double> held = tests::tensor_of<double>(in, required);
    Tensor<double> out(gradient.region);
    Tensor<ArgmaxOffset> argmax(region);
    max_pool_forward<double>({pool, in.region, region}, held.view(), {out.view(), argmax.view()});
    CHECK(tests::relative_difference(View<const double>(out.view()), expected, region) == 0);
    Tensor<double> in_gradient(required);
    const Tensor<double> out_gradient = tests::tensor_of<double>(gradient, region);
    max_pool_backward<double>({pool, in.region, region},
                              out_gradient.view(),
                              std::as_const(argmax).view(),
                              in_gradient.view());
    CHECK(tests::relative_difference(
              View<const double>(in_gradient.view()), expected_gradient, required) < 1e-14);
  }
}

TEST_CASE("the place of the argmax in its window does not depend on the region computed") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Draw draw(seed + 500);
    const Network network = random_pool(draw);
    const MaxPool pool = std::get<MaxPool>(network.layer(0).operation);
    PlainMap in = map_with_ties(whole_map(network, partitioner::kImage, 2), seed);
    const Region whole = whole_map(network, 0, 2);
    const Region region = tests::random_part(draw, whole);
    Tensor<float> values(whole);
    Tensor<ArgmaxOffset> all(whole);
    Tensor<ArgmaxOffset> part(region);
    max_pool_forward<float>({pool, in.region, whole},
                            tests::tensor_of<float>(in, in.region).view(),
                            {values.view(), all.view()});
    max_pool_forward<float>(
        {pool, in.region, region},
        tests::tensor_of<float>(in, required_input(network, 0, 0, region)).view(),
        {values.view(), part.view()});
    bool same = true;
    tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
      same = same && all.view().at(n, c, row, col) == part.view().at(n, c, row, col);
    });
    CHECK_MESSAGE(same, "seed ", seed);
  }
}

// A pool whose windows do not overlap.
Network random_fusable_pool(Draw& draw) {
  while (true) {
    const Network network = random_pool(draw);
    const MaxPool& pool = std::get<MaxPool>(network.layer(0).operation);
    if (pool.size == pool.stride) {
      return network;
    }
  }
}

TEST_CASE(
    "a fused pool makes of pre-activations what activation and pool make one after the other") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed ", seed);
    Draw draw(seed + 900);
    const Network network = random_fusable_pool(draw);
    const MaxPool pool = std::get<MaxPool>(network.layer(0).operation);
    PlainMap in = map_with_ties(whole_map(network, partitioner::kImage, 2), seed);
    const Region region = tests::random_part(draw, whole_map(network, 0, 2));
    const Region required = required_input(network, 0, 0, region);
    const engine::PoolSite site{pool, in.region, region};
    const Tensor<float> sums = tests::tensor_of<float>(in, required);
    Tensor<float> activated(required);
    activate_forward(partitioner::Activation::Leaky, sums.view(), required, activated.view());
    Tensor<float> expected(region);
    Tensor<float> found(region);
    Tensor<ArgmaxOffset> expected_argmax(region);
    Tensor<ArgmaxOffset> found_argmax(region);
    max_pool_forward<float>(site, activated.view(), {expected.view(), expected_argmax.view()});
    activate_pool_forward<float>(
        partitioner::Activation::Leaky, sums.view(), site, {found.view(), found_argmax.view()});
    bool same = true;
    tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
      same = same && found.view().at(n, c, row, col) == expected.view().at(n, c, row, col) &&
             found_argmax.view().at(n, c, row, col) == expected_argmax.view().at(n, c, row, col);
    });
    CHECK(same);
  }
}

TEST_CASE("the gradients that a fused pool's argmax cells get are those that the pool gives") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed ", seed);
    Draw draw(seed + 1900);
    const Network network = random_fusable_pool(draw);
    PlainMap in = map_with_ties(whole_map(network, partitioner::kImage, 2), seed);
    PlainMap gradient = tests::random_map(whole_map(network, 0, 2), seed + 1);
    const Region region = tests::random_part(draw, gradient.region);
    const engine::PoolSite site{std::get<MaxPool>(network.layer(0).operation), in.region, region};
    Tensor<float> values(region);
    Tensor<ArgmaxOffset> argmax(region);
    max_pool_forward<float>(
        site, tests::tensor_of<float>(in, in.region).view(), {values.view(), argmax.view()});
    const Tensor<float> out_gradient = tests::tensor_of<float>(gradient, region);
    Tensor<float> expected(in.region);
    max_pool_backward<float>(
        site, out_gradient.view(), std::as_const(argmax).view(), expected.view());
    const engine::GradientLines<float> lines(
        site, out_gradient.view(), std::as_const(argmax).view());
    Region wanted = tests::random_part(draw, in.region);
    wanted.images = region.images;
    wanted.channels = region.channels;
    Tensor<float> part(wanted);
    copy_lines(lines, wanted, part.view());
    bool same = true;
    tests::for_each_cell(wanted, [&](Index n, Index c, Index row, Index col) {
      same = same && part.view().at(n, c, row, col) == expected.view().at(n, c, row, col);
    });
    CHECK(same);
    // Beside channels that are none of theirs, which stay as they are.
    Region beside = wanted;
    beside.channels = in.region.channels;
    Tensor<float> wide(beside);
    std::fill(wide.values().span().begin(), wide.values().span().end(), 7.0F);
    copy_lines(lines, wanted, wide.view());
    tests::for_each_cell(beside, [&](Index n, Index c, Index row, Index col) {
      const bool theirs = c >= wanted.channels.begin && c < wanted.channels.end;
      same = same &&
             wide.view().at(n, c, row, col) == (theirs ? expected.view().at(n, c, row, col) : 7.0F);
    });
    CHECK(same);
  }
}

TEST_CASE("the average of a map is over all of its cells, and shares its gradient among them") {
  const Region map{{0, 2}, {0, 19}, {0, 5}, {0, 7}};
  PlainMap in = tests::random_map(map, 1);
  const Region region{{1, 2}, {3, 18}, {0, 1}, {0, 1}};
  Tensor<double> held = tests::tensor_of<double>(in, map);
  Tensor<double> out(region);
  average_pool_forward(View<const double>(held.view()), map, region, out.view());
  Tensor<double> gradient(map);
  Tensor<double> ones(region);
  for (Index c = 3; c < 18; ++c) {
    double sum = 0;
    tests::for_each_cell(
        {{1, 2}, {c, c + 1}, map.rows, map.cols},
        [&](Index n, Index k, Index row, Index col) { sum += in.at(n, k, row, col); });
    CHECK(out.view().at(1, c, 0, 0) == doctest::Approx(sum / 35));
    ones.view().at(1, c, 0, 0) = 1;
  }
  average_pool_backward(View<const double>(ones.view()), map, region, gradient.view());
  tests::for_each_cell(map, [&](Index n, Index c, Index row, Index col) {
    const bool inside = n == 1 && c >= 3 && c < 18;
    CHECK(gradient.view().at(n, c, row, col) == doctest::Approx(inside ? 1.0 / 35 : 0.0));
  });
}

TEST_CASE("an empty region touches no memory, whichever of its ranges is empty") {
  const Region map{{0, 1}, {0, 4}, {0, 6}, {0, 6}};
  const View<const float> nothing;
  for (const Region& empty : {Region{{0, 0}, {0, 4}, {0, 1}, {0, 1}},
                              Region{{0, 1}, {2, 2}, {0, 1}, {0, 1}},
                              Region{{0, 1}, {0, 4}, {0, 0}, {0, 1}},
                              Region{{0, 1}, {0, 4}, {0, 1}, {1, 1}}}) {
    CHECK(empty.empty());
    average_pool_forward(nothing, map, empty, View<float>{});
    average_pool_backward(nothing, map, empty, View<float>{});
    max_pool_forward<float>({MaxPool{2, 2, 0}, map, empty}, nothing, {});
    max_pool_backward<float>({MaxPool{2, 2, 0}, map, empty}, nothing, {}, {});
  }
}

}  // namespace
