#include "engine/ops/convolution/deconvolution.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/support/pieces.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Array;
using engine::ConvolutionPass;
using engine::ConvolutionShape;
using engine::Tensor;
using engine::View;
using tests::Draw;
using tests::PlainMap;

// Relative to the largest value: sums of some hundred products in another order.
template <class T>
constexpr double kSumRounding = sizeof(T) == sizeof(double) ? 1e-13 : 2e-5;

struct Spread {
  partitioner::Network network;
  ConvolutionShape shape;
  PlainMap in;
  std::vector<double> weight;
  std::vector<double> bias;
  PlainMap out_gradient;

  [[nodiscard]] Region output() const { return out_gradient.region; }
  [[nodiscard]] Region cells(const Region& region) const {
    return required_input(network, 0, 0, region);
  }
};

Spread random_spread(std::uint64_t seed) {
  Draw draw(seed);
  partitioner::Network network;
  partitioner::Deconvolution layer;
  while (network.layers.empty()) {
    network.image = {
        draw.among<Index>({1, 2, 3, 6, 16, 17}), draw.between(1, 9), draw.between(1, 9)};
    layer.filters = draw.among<Index>({1, 2, 4, 5, 7, 8, 9, 16, 19, 33});
    layer.size = {draw.between(1, 5), draw.between(1, 4)};
    layer.stride = {draw.between(1, 3), draw.between(1, 4)};
    layer.padding = {draw.between(0, 2), draw.between(0, 2)};
    layer.more_padding = {draw.between(-1, 1), draw.between(-1, 1)};
    try {
      add_layer(network, layer, {partitioner::kImage});
    } catch (const std::invalid_argument&) {
    }
  }
  const Index batch = draw.between(1, 3);
  const ConvolutionShape shape{.filters = layer.filters,
                               .channels = network.image.channels,
                               .size = layer.size,
                               .stride = layer.stride,
                               .padding = layer.padding};
  return {network,
          shape,
          tests::random_map(whole_map(network, partitioner::kImage, batch), seed),
          tests::random_values(shape.filters * shape.row(), seed + 1),
          tests::random_values(shape.filters, seed + 2),
          tests::random_map(whole_map(network, 0, batch), seed + 3)};
}

// Numbers of the channels of a region, `row` of each.
template <class T>
std::vector<T> weights_of(const std::vector<double>& values, const Range& rows, Index row) {
  return {values.data() + rows.begin * row, values.data() + rows.end * row};
}

template <class T>
Array<T> scratch_for(const Spread& of, ConvolutionPass pass, const Region& region) {
  Array<T> workspace(deconvolution_workspace(pass, of.shape, region, of.cells(region)));
  std::fill_n(workspace.data(), workspace.size(), static_cast<T>(NAN));
  return workspace;
}

template <class T>
Tensor<T> held_input(Spread& of, const Region& region, Draw& draw) {
  return tests::tensor_of<T>(of.in, draw.chance(0.5) ? of.cells(region) : of.in.region);
}

template <class T>
Tensor<T> spread_forward(Spread& of, const Region& region, Draw& draw, bool has_bias = true) {
  const Tensor<T> in = held_input<T>(of, region, draw);
  const auto weight = weights_of<T>(of.weight, region.channels, of.shape.row());
  const auto bias = weights_of<T>(of.bias, region.channels, 1);
  Tensor<T> out(draw.chance(0.5) ? region : of.output());
  auto workspace = scratch_for<T>(of, ConvolutionPass::Forward, region);
  engine::deconvolution_forward<T>(of.shape,
                                   in.view(),
                                   of.cells(region),
                                   {weight.data(), has_bias ? bias.data() : nullptr},
                                   {out.view(), region},
                                   workspace.data());
  return out;
}

constexpr std::uint64_t kSpreads = 120;

template <class T>
void check_spread(Spread of, std::uint64_t seed) {
  INFO("seed ", seed);
  Draw draw(seed + 1000);
  const bool has_bias = draw.chance(0.7);
  PlainMap expected(of.output());
  naive_deconvolution(of.shape,
                      of.in,
                      of.weight,
                      has_bias ? of.bias : std::vector<double>(of.bias.size()),
                      expected);
  const Region region = draw.chance(0.3) ? of.output() : tests::random_part(draw, of.output());
  const Tensor<T> found = spread_forward<T>(of, region, draw, has_bias);
  CHECK(tests::relative_difference(found.view(), expected, region) <= kSumRounding<T>);
}

TEST_CASE("a transposed convolution computes its definition, on any part of the map") {
  for (std::uint64_t seed = 0; seed < kSpreads; ++seed) {
    check_spread<double>(random_spread(seed), seed);
    check_spread<float>(random_spread(seed), seed);
  }
}

TEST_CASE("a cell of a transposed convolution has the same bits whatever is computed with it") {
  for (std::uint64_t seed = 0; seed < kSpreads; ++seed) {
    Spread of = random_spread(seed);
    Draw draw(seed + 2000);
    const Tensor<float> whole = spread_forward<float>(of, of.output(), draw);
    for (int piece = 0; piece < 4; ++piece) {
      const Region region = tests::random_part(draw, of.output());
      const Tensor<float> part = spread_forward<float>(of, region, draw);
      Index others = 0;
      tests::for_each_cell(region, [&](Index n, Index k, Index row, Index col) {
        others += part.view().at(n, k, row, col) == whole.view().at(n, k, row, col) ? 0 : 1;
      });
      CHECK_MESSAGE(others == 0, "seed ", seed);
    }
  }
}

template <class T>
void check_gathered(Spread of, std::uint64_t seed) {
  INFO("seed ", seed);
  Draw draw(seed + 3000);
  const Region region = draw.chance(0.3) ? of.output() : tests::random_part(draw, of.output());
  constexpr double kBefore = 0.25;  // gradients are added to what is there
  PlainMap in_gradient(of.in.region);
  std::vector<double> weight_gradient(of.weight.size());
  naive_deconvolution_backward(
      of.shape, region, of.in, of.weight, of.out_gradient, in_gradient, weight_gradient);
  const Tensor<T> in = held_input<T>(of, region, draw);
  const Tensor<T> gradient =
      tests::tensor_of<T>(of.out_gradient, draw.chance(0.5) ? region : of.output());

  auto weights = weights_of<T>(
      std::vector<double>(of.weight.size(), kBefore), region.channels, of.shape.row());
  auto workspace = scratch_for<T>(of, ConvolutionPass::BackwardWeights, region);
  engine::deconvolution_backward_weights<T>(of.shape,
                                            in.view(),
                                            of.cells(region),
                                            gradient.view(),
                                            region,
                                            weights.data(),
                                            workspace.data());
  double difference = 0;
  double magnitude = 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected =
        weight_gradient[i + static_cast<std::size_t>(region.channels.begin * of.shape.row())] +
        kBefore;
    difference = std::max(difference, std::abs(static_cast<double>(weights[i]) - expected));
    magnitude = std::max(magnitude, std::abs(expected));
  }
  CHECK(difference <= kSumRounding<T> * magnitude);

  Tensor<T> to = held_input<T>(of, region, draw);
  std::fill_n(to.values().data(), to.values().size(), static_cast<T>(kBefore));
  for (double& value : in_gradient.values) {
    value += kBefore;
  }
  const auto weight = weights_of<T>(of.weight, region.channels, of.shape.row());
  workspace = scratch_for<T>(of, ConvolutionPass::BackwardData, region);
  engine::deconvolution_backward_data<T>(of.shape,
                                         gradient.view(),
                                         region,
                                         weight.data(),
                                         to.view(),
                                         of.cells(region),
                                         workspace.data());
  CHECK(tests::relative_difference<T>(to.view(), in_gradient, to.region()) <= kSumRounding<T>);
}

TEST_CASE("a transposed convolution adds the gradients of its definition") {
  for (std::uint64_t seed = 0; seed < kSpreads; ++seed) {
    check_gathered<double>(random_spread(seed), seed);
    check_gathered<float>(random_spread(seed), seed);
  }
}

}  // namespace
