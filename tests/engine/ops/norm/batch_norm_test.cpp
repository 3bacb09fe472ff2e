#include "engine/ops/norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/naive_norm.h"
#include "tests/support/pieces.h"
#include <doctest/doctest.h>
#include <omp.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Moments;
using engine::Tensor;
using engine::View;
using tests::PlainMap;

const Region kMap{{0, 3}, {0, 19}, {0, 7}, {0, 9}};

// Far from zero, as a channel's values may be: squares then say little about the deviation.
PlainMap shifted_map(double mean) {
  PlainMap map = tests::random_map(kMap, 3);
  for (double& value : map.values) {
    value = static_cast<double>(static_cast<float>(value + mean));
  }
  return map;
}

// By the definition, in two passes over one channel of a region.
Moments moments_of(PlainMap& map, Region region, Index channel) {
  region.channels = {channel, channel + 1};
  Moments moments;
  tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    moments.count += 1;
    moments.mean += map.at(n, c, row, col);
  });
  moments.mean /= moments.count;
  tests::for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    moments.squares += std::pow(map.at(n, c, row, col) - moments.mean, 2);
  });
  return moments;
}

void check_alike(const Moments& found, const Moments& expected) {
  CHECK(found.count == expected.count);
  CHECK(found.mean == doctest::Approx(expected.mean).epsilon(1e-13));
  CHECK(found.squares == doctest::Approx(expected.squares).epsilon(1e-9));
}

TEST_CASE("moments of a region count its cells only, and lose no digits far from zero") {
  PlainMap map = shifted_map(1e4);
  const Tensor<float> tensor = tests::tensor_of<float>(map, {{0, 3}, {0, 19}, {-2, 9}, {-2, 11}});
  for (const Region& region : {kMap, Region{{1, 2}, {5, 18}, {2, 6}, {0, 3}}}) {
    const auto found = channel_moments(tensor.view(), region);
    CHECK(static_cast<Index>(found.size()) == region.channels.size());
    for (std::size_t c = 0; c < found.size(); ++c) {
      check_alike(found[c], moments_of(map, region, region.channels.begin + static_cast<Index>(c)));
    }
  }
}

TEST_CASE("merged moments of uneven tiles are those of the whole map") {
  PlainMap map = shifted_map(-300);
  for (const Index boundary : {0, 1, 4, 7}) {
    Region above = kMap;
    Region below = kMap;
    above.rows.end = below.rows.begin = boundary;
    const Tensor<double> tensor = tests::tensor_of<double>(map, kMap);
    const Moments a = above.empty() ? Moments{} : channel_moments(tensor.view(), above).at(2);
    const Moments b = below.empty() ? Moments{} : channel_moments(tensor.view(), below).at(2);
    check_alike(merge(a, b), moments_of(map, kMap, 2));
  }
}

TEST_CASE("moments have the same bits with 1, 2 and 3 threads") {
  PlainMap map = shifted_map(2);
  const Tensor<float> tensor = tests::tensor_of<float>(map, kMap);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto expected = channel_moments(tensor.view(), kMap);
  for (const int threads : {2, 3}) {
    omp_set_num_threads(threads);
    const auto found = channel_moments(tensor.view(), kMap);
    for (std::size_t c = 0; c < found.size(); ++c) {
      CHECK(found[c].mean == expected[c].mean);
      CHECK(found[c].squares == expected[c].squares);
    }
  }
  omp_set_num_threads(before);
}

TEST_CASE("only owned cells take the correction that flows through mean and variance") {
  PlainMap map = shifted_map(0);
  Tensor<double> in = tests::tensor_of<double>(map, kMap);
  Tensor<double> gradient(kMap);
  std::fill_n(gradient.values().data(), gradient.values().size(), 1.0);
  const std::vector<engine::ChannelNorm<double>> norms(19, {0.5, 2.0, 2.0, 2.0});
  const std::vector<double> scale(19, 3.0);
  const std::vector<double> shift(19, 0.0);
  const std::vector<engine::NormGradient> totals(19, {10.0, 0.0});
  const Region owned{{1, 2}, {4, 17}, {2, 5}, {3, 4}};
  engine::normalize_backward<double>(in.view(),
                                     kMap,
                                     {0, norms, scale.data(), shift.data()},
                                     {totals, 100, owned},
                                     engine::GradientLines<double>(gradient.view()));
  tests::for_each_cell(kMap, [&](Index n, Index c, Index row, Index col) {
    const bool is_owned = contains(owned, {{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}});
    CHECK(in.view().at(n, c, row, col) ==
          doctest::Approx(2.0 * 3.0 * (1 - (is_owned ? 0.1 : 0.0))));
  });
}

TEST_CASE("each rule computes what its own program does, forward and back") {
  const Region map{{0, 2}, {0, 19}, {0, 3}, {0, 5}};  // few cells: divisors matter
  PlainMap plain = tests::random_map(map, 5);
  PlainMap above = tests::random_map(map, 6);
  for (Index n = 0; n < 2; ++n) {
    for (Index i = 0; i < 15; ++i) {
      plain.at(n, 3, i / 5, i % 5) *= 1e-3;  // a deviation of the size of what is added to it
    }
  }
  const std::vector<double> scale = tests::random_values(19, 7);
  const std::vector<double> shift = tests::random_values(19, 8);
  for (const engine::NormRule& rule : {engine::NormRule{},
                                       engine::NormRule{.epsilon = 0.5},
                                       engine::NormRule{partitioner::kDarknetNorm}}) {
    tests::NaiveNorm expected = tests::naive_norm(rule, plain, above, scale, shift);
    Tensor<double> in = tests::tensor_of<double>(plain, map);
    const Tensor<double> gradient = tests::tensor_of<double>(above, map);
    Tensor<double> out(map);
    std::vector<engine::ChannelNorm<double>> norms;
    const std::vector<Moments> moments = channel_moments<double>(in.view(), map);
    for (const Moments& of_channel : moments) {
      norms.push_back(engine::batch_norm<double>(rule, of_channel));
    }
    const engine::Normalization<double> by{0, norms, scale.data(), shift.data()};
    const engine::GradientLines<double> lines(gradient.view());
    normalize_forward<double>(in.view(), map, by, out.view());
    const auto totals = normalize_backward_statistics<double>(in.view(), map, by, lines);
    normalize_backward<double>(in.view(), map, by, {totals, 30, map}, lines);
    constexpr double kBound = 1e-12;
    CHECK(tests::relative_difference<double>(out.view(), expected.out, map) <= kBound);
    for (Index channel = 0; channel < 19; ++channel) {
      CAPTURE(channel);
      const auto c = static_cast<std::size_t>(channel);
      Region of_channel = map;
      of_channel.channels = {channel, channel + 1};
      CHECK(tests::relative_difference<double>(in.view(), expected.in_gradient, of_channel) <=
            1e-10);
      CHECK(engine::running_variance(moments[c]) ==
            doctest::Approx(expected.running_variance[c]).epsilon(kBound));
      CHECK(totals[c].shift == doctest::Approx(expected.shift_gradient[c]).epsilon(1e-10));
      CHECK(totals[c].scale == doctest::Approx(expected.scale_gradient[c]).epsilon(1e-10));
    }
  }
}

TEST_CASE("gradients brought through an activation have the same bits as those on the way") {
  // Rows of whole maps are joined; those of parts of them are not.
  for (const Range rows : {Range{0, 6}, Range{1, 4}}) {
    for (const auto activation : {partitioner::Activation::Swish,
                                  partitioner::Activation::Mish,
                                  partitioner::Activation::Gelu,
                                  partitioner::Activation::Elu}) {
      CAPTURE(static_cast<int>(activation));
      const Region map{{0, 2}, {0, 19}, {0, 6}, {0, 5}};
      Region region = map;
      region.rows = rows;
      const auto count = static_cast<double>(2 * rows.size() * 5);
      PlainMap plain = tests::random_map(map, 5);
      PlainMap above = tests::random_map(map, 6);
      Tensor<float> in = tests::tensor_of<float>(plain, map);
      Tensor<float> expected = tests::tensor_of<float>(plain, map);
      Tensor<float> gradient = tests::tensor_of<float>(above, map);
      const std::vector<engine::ChannelNorm<float>> norms(19, {0.1F, 2, 2, 2});
      const std::vector<float> scale(19, 1.5F);
      const std::vector<float> shift(19, 0.25F);
      engine::Normalization<float> by{0, norms, scale.data(), shift.data(), activation};
      const engine::GradientLines<float> lines(std::as_const(gradient).view());
      const auto totals =
          normalize_backward_statistics<float>(std::as_const(in).view(), region, by, lines);
      normalize_backward<float>(expected.view(), region, by, {totals, count, region}, lines);

      const auto same = normalize_backward_statistics<float>(
          std::as_const(in).view(), region, by, lines, gradient.view());
      by.activation = partitioner::Activation::Linear;
      normalize_backward<float>(in.view(), region, by, {same, count, region}, lines);
      for (std::size_t c = 0; c < totals.size(); ++c) {
        CHECK(same[c].shift == totals[c].shift);
        CHECK(same[c].scale == totals[c].scale);
      }
      CHECK(std::ranges::equal(in.values().span(), expected.values().span()));
    }
  }
}

TEST_CASE("running statistics are constants by either rule, and a single cell has no variance") {
  for (const engine::NormRule& rule :
       {engine::NormRule{}, engine::NormRule{partitioner::kDarknetNorm}}) {
    const auto running = engine::running_norm<double>(rule, 0.5, 4);
    CHECK(running.mean == 0.5);
    CHECK(running.inverse_deviation == doctest::Approx(0.5).epsilon(1e-5));
    CHECK(running.backward == running.inverse_deviation);
    CHECK(engine::running_variance({1, 3, 0}) == 0);
    const auto single = engine::batch_norm<float>(rule, {1, 3, 0});
    CHECK(single.mean == 3);
    CHECK(std::isfinite(single.inverse_deviation));
    CHECK(std::isfinite(single.curvature));
  }
  CHECK(engine::running_norm<double>(partitioner::kDarknetNorm, 0, 0).inverse_deviation ==
        doctest::Approx(1e6));
}

}  // namespace
