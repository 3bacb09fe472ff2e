// The gradient of every kind of layer, against central differences of <output, R> along random
// directions.

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/chain.h"
#include "tests/support/random_tensors.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using engine::NamedTensor;
using engine::NamedTensors;
using partitioner::Activation;
using partitioner::Convolution;
using partitioner::kImage;
using partitioner::MaxPool;
using partitioner::Network;
using tests::chain;
using tests::convolution;
using tests::normalized;

// Central differences are off by kStep^2 times the third derivative, and by rounding over kStep;
// both are near 1e-10. The seeds are ones at which no value lies within a step of a kink or a tie.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-8;

// How normalisation is computed.
struct Norm {
  BatchNormMode mode = BatchNormMode::Sync;
  partitioner::NormRule rule;
};

double output_times(const Network& network, const NamedTensors& in, const Norm& norm) {
  const NamedTensors out = tests::on_one_tile<double>(network, in, norm.mode, norm.rule);
  const std::vector<double>& values = out.at("output").values;
  const std::vector<double>& weights = in.at("output_gradient").values;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i] * weights[i];
  }
  return sum;
}

std::vector<double> random_direction(std::size_t size, std::uint64_t seed) {
  std::vector<double> direction;
  for (std::size_t i = 0; i < size; ++i) {
    direction.push_back(engine::random_normal(seed, i) / std::sqrt(static_cast<double>(size)));
  }
  return direction;
}

NamedTensors moved(NamedTensors in,
                   const std::string& name,
                   const std::vector<double>& direction,
                   double by) {
  std::vector<double>& values = in.at(name).values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += by * direction[i];
  }
  return in;
}

// How far the slope along a direction is from what gradients say, by the terms of the latter.
double slope_error(const Network& network,
                   const NamedTensors& in,
                   const std::string& name,
                   const std::vector<double>& gradient,
                   const std::vector<double>& direction,
                   const Norm& norm) {
  double expected = 0;
  double magnitude = 1;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    expected += gradient[i] * direction[i];
    magnitude += std::abs(gradient[i] * direction[i]);
  }
  const double numeric = (output_times(network, moved(in, name, direction, kStep), norm) -
                          output_times(network, moved(in, name, direction, -kStep), norm)) /
                         (2 * kStep);
  return std::abs(numeric - expected) / magnitude;
}

void check_gradients(const Network& network, Index batch = 2, const Norm& norm = {}) {
  const NamedTensors in = tests::random_tensors(network, batch, 17);
  const NamedTensors out = tests::on_one_tile<double>(network, in, norm.mode, norm.rule);
  for (const auto& entry : in) {
    const std::string& name = entry.first;
    const std::string gradient_name = name == "input" ? "input_gradient" : name;
    if (name == "output_gradient" || name.ends_with(".mean") || name.ends_with(".variance")) {
      continue;
    }
    const std::vector<double>& gradient = out.at(gradient_name).values;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const double error =
          slope_error(network, in, name, gradient, random_direction(gradient.size(), seed), norm);
      CHECK_MESSAGE(error <= kTolerance, name, ": ", error);
    }
  }
}

TEST_CASE(
    "convolutions have the gradient of their definition, whatever filter, stride, padding and "
    "groups") {
  for (const Index size : {1, 2, 3, 5, 7}) {
    for (const Index stride : {1, 2, 3}) {
      INFO("size ", size, " stride ", stride);
      check_gradients(chain({3, 8, 7}, {convolution(5, size, stride, Activation::Linear)}));
    }
  }
  for (const partitioner::PerAxis more :
       {partitioner::PerAxis(-1, 2), partitioner::PerAxis(2, 0)}) {
    for (const Index stride : {1, 2}) {
      INFO("more padding ", more.rows, " ", more.cols, " stride ", stride);
      check_gradients(chain({3, 8, 7},
                            {Convolution{.filters = 5,
                                         .size = 5,
                                         .stride = stride,
                                         .padding = 1,
                                         .activation = Activation::Linear,
                                         .more_padding = more}}));
    }
  }
  for (const Index groups : {2, 3, 6}) {
    check_gradients(chain({6, 5, 6},
                          {Convolution{.filters = 2 * groups,
                                       .size = 3,
                                       .padding = 2,
                                       .groups = groups,
                                       .activation = Activation::Linear}}));
  }
  for (const Index dilation : {2, 3, 4}) {
    for (const Index stride : {1, 2, 3}) {
      for (const Index groups : {1, 2, 4}) {
        INFO("dilation ", dilation, " stride ", stride, " groups ", groups);
        check_gradients(chain({4, 11, 9},
                              {Convolution{.filters = 4,
                                           .size = {3, 2},
                                           .stride = stride,
                                           .padding = {dilation, 1},
                                           .groups = groups,
                                           .activation = Activation::Linear,
                                           .dilation = dilation}}));
      }
    }
  }
}

TEST_CASE("transposed convolutions have the gradient of their definition, normalised or not") {
  for (const auto& [size, stride, padding] :
       {std::tuple{2, 2, 0}, {4, 2, 1}, {3, 1, 1}, {2, 3, 0}}) {
    for (const bool normalize : {false, true}) {
      INFO("size ", size, " stride ", stride, " normalize ", normalize);
      check_gradients(chain({3, 4, 5},
                            {convolution(6, 3, 1, Activation::Tanh),
                             partitioner::Deconvolution{.filters = 5,
                                                        .size = size,
                                                        .stride = stride,
                                                        .padding = padding,
                                                        .batch_normalize = normalize,
                                                        .activation = Activation::Swish}}));
    }
  }
}

TEST_CASE(
    "activations have the gradient of their definition, behind pre-activations and behind "
    "normalisation") {
  for (const Activation activation : {Activation::Linear,
                                      Activation::Relu,
                                      Activation::Leaky,
                                      Activation::Relu6,
                                      Activation::Elu,
                                      Activation::Logistic,
                                      Activation::Tanh,
                                      Activation::Swish,
                                      Activation::Mish,
                                      Activation::Ramp,
                                      Activation::HardMish,
                                      Activation::HardSigmoid,
                                      Activation::HardSwish,
                                      Activation::Gelu}) {
    INFO(activation_name(activation));
    check_gradients(chain(
        {2, 6, 5}, {convolution(3, 3, 1, activation), convolution(2, 1, 1, Activation::Tanh)}));
    check_gradients(chain(
        {2, 6, 5},
        {normalized(convolution(3, 3, 1, activation)), convolution(2, 1, 1, Activation::Tanh)}));
  }
}

TEST_CASE(
    "batch normalisation has the gradient of its definition, through mean and variance and as "
    "constants") {
  const Network network = chain({3, 6, 7},
                                {normalized(convolution(5, 3, 1, Activation::Tanh)),
                                 normalized(convolution(18, 3, 2, Activation::Linear))});
  check_gradients(network, 3);
  check_gradients(network, 3, {BatchNormMode::Frozen, {}});
  check_gradients(chain({2, 3, 2}, {partitioner::Connected{4, true, Activation::Tanh}}), 9);
}

// What is above the last normalisation, and its own scale and shift, get true gradients, and with
// running statistics so does all. What goes back through batch statistics is near to the derivative
// in direction and size, and off by the share of a cell: here, of 12 cells, by some per cent.
TEST_CASE("by Darknet's rule scale and shift have their derivatives, and what is below does not") {
  const Network network = chain({3, 2, 3},
                                {convolution(6, 3, 1, Activation::Linear),
                                 normalized(convolution(5, 1, 1, Activation::Linear)),
                                 convolution(4, 1, 1, Activation::Tanh)});
  const Norm batch{BatchNormMode::Sync, partitioner::kDarknetNorm};
  check_gradients(network, 2, {BatchNormMode::Frozen, partitioner::kDarknetNorm});
  const NamedTensors in = tests::random_tensors(network, 2, 17);
  const NamedTensors out = tests::on_one_tile<double>(network, in, batch.mode, batch.rule);
  const auto errors = [&](const std::string& name, const std::string& gradient) {
    const std::vector<double>& values = out.at(gradient).values;
    return slope_error(network, in, name, values, random_direction(values.size(), 1), batch);
  };
  for (const char* name :
       {"layers.2.weight", "layers.2.bias", "layers.1.bn.scale", "layers.1.bias"}) {
    CAPTURE(name);
    CHECK(errors(name, name) <= kTolerance);
  }
  for (const auto& [name, gradient] : {std::pair{"layers.1.weight", "layers.1.weight"},
                                       std::pair{"layers.0.weight", "layers.0.weight"},
                                       std::pair{"input", "input_gradient"}}) {
    CAPTURE(name);
    CHECK(errors(name, gradient) > 1e-4);
    CHECK(errors(name, gradient) < 0.2);
  }
}

TEST_CASE("pools have the gradient of their definition") {
  for (const MaxPool& pool : {MaxPool{2, 2, 1},
                              MaxPool{3, 1, 2},
                              MaxPool{3, 2, 0},
                              MaxPool{5, 3, 4},
                              MaxPool{2, 3, 1},
                              MaxPool{3, {1, 2}, 2},
                              MaxPool{2, {3, 1}, 1}}) {
    check_gradients(chain({3, 8, 7}, {convolution(18, 1, 1, Activation::Linear), pool}));
  }
  for (const Index outputs : {1, 5, 7, 18}) {
    check_gradients(chain(
        {3, 6, 5}, {convolution(18, 1, 1, Activation::Linear), partitioner::ChannelPool{outputs}}));
  }
  check_gradients(chain({3, 5, 4},
                        {convolution(4, 3, 1, Activation::Tanh),
                         partitioner::AvgPool{},
                         convolution(3, 1, 1, Activation::Tanh)}));
}

TEST_CASE("connected layers, dropout that is off and cost have the gradient of their definition") {
  check_gradients(chain({3, 4, 5},
                        {convolution(6, 3, 1, Activation::Tanh),
                         partitioner::Connected{7, false, Activation::Logistic},
                         partitioner::Dropout{0.5},
                         partitioner::Connected{3, false, Activation::Linear},
                         partitioner::Cost{}}));
}

TEST_CASE("layers with weights of their own for each cell have the gradient of their definition") {
  for (const Activation activation : {Activation::Linear, Activation::Leaky, Activation::Swish}) {
    for (const partitioner::Local& local : {partitioner::Local{4, 3, 1, 1, activation},
                                            partitioner::Local{3, 2, 2, 0, activation},
                                            partitioner::Local{17, 1, 1, 0, activation}}) {
      check_gradients(chain({3, 5, 6}, {convolution(4, 3, 1, Activation::Tanh), local}));
    }
  }
}

TEST_CASE("softmax has its true Jacobian, over images, groups, cells and with a temperature") {
  for (const partitioner::Softmax& softmax : {partitioner::Softmax{1, false, 1.0},
                                              partitioner::Softmax{3, false, 2.0},
                                              partitioner::Softmax{4, false, 1.0},
                                              partitioner::Softmax{1, true, 0.7}}) {
    check_gradients(chain({6, 2, 3}, {convolution(6, 1, 1, Activation::Linear), softmax}));
  }
}

TEST_CASE("shortcuts of any two shapes have the gradient of their definition") {
  for (const Activation activation : {Activation::Linear, Activation::Leaky, Activation::Swish}) {
    Network network =
        chain({3, 6, 8},
              {convolution(4, 3, 1, Activation::Tanh), convolution(6, 3, 2, Activation::Tanh)});
    add_layer(network, partitioner::Shortcut{activation, 0.5, -1.5}, {0, 1});
    add_layer(network, partitioner::Shortcut{activation, -0.3, 2}, {1, 2});
    add_layer(network, partitioner::Shortcut{activation, 1, 1}, {3, 3});
    check_gradients(network);
  }
}

TEST_CASE("shortcuts of several maps have the gradient of their definition") {
  for (const Activation activation : {Activation::Linear, Activation::Leaky, Activation::Mish}) {
    Network network = chain({3, 6, 8}, {convolution(4, 3, 1, Activation::Tanh)});
    add_layer(network, convolution(4, 3, 1, Activation::Tanh), {0});
    add_layer(network, partitioner::Shortcut{activation, 0.5, -1.5}, {1, 0, 1});
    add_layer(network, partitioner::Shortcut{activation, 1, 1}, {2, 0, 1, 2});
    check_gradients(network);
  }
}

TEST_CASE("products of maps have the gradient of their definition") {
  for (const Activation activation : {Activation::Linear, Activation::Tanh, Activation::Swish}) {
    INFO(activation_name(activation));
    Network network = chain({3, 6, 5}, {convolution(18, 3, 1, Activation::Tanh)});
    add_layer(network, convolution(18, 1, 1, Activation::Logistic), {0});
    add_layer(network, partitioner::Sam{activation}, {1, 0});
    add_layer(network, partitioner::Sam{activation}, {2, 2});
    check_gradients(network);

    add_layer(network, partitioner::AvgPool{}, {3});
    add_layer(network, convolution(18, 1, 1, Activation::Logistic), {4});
    add_layer(network, partitioner::ScaleChannels{activation}, {5, 3});
    check_gradients(network);

    add_layer(network, convolution(1, 3, 1, Activation::Logistic), {6});
    add_layer(network, partitioner::ScaleChannels{activation, true}, {7, 6});
    check_gradients(network);
  }
}

TEST_CASE("routes of one, many and parts of maps have the gradient of their definition") {
  Network network = chain(
      {3, 5, 6}, {convolution(4, 3, 1, Activation::Tanh), convolution(6, 3, 1, Activation::Tanh)});
  add_layer(network, partitioner::Route{}, {1, 0, 1});
  add_layer(network, partitioner::Route{2, 1}, {2, 0});
  add_layer(network, convolution(2, 3, 1, Activation::Tanh), {3});
  check_gradients(network);
}

TEST_CASE("layers that move cells have the gradient of their definition") {
  check_gradients(
      chain({8, 4, 6}, {convolution(8, 1, 1, Activation::Tanh), partitioner::Reorg{2, false}}));
  check_gradients(
      chain({8, 4, 6}, {convolution(8, 1, 1, Activation::Tanh), partitioner::Reorg{2, true}}));
  check_gradients(
      chain({3, 6, 9}, {convolution(5, 1, 1, Activation::Tanh), partitioner::SpaceToDepth{3}}));
  for (const bool bilinear : {false, true}) {
    for (const Index stride : {2, 3}) {
      check_gradients(chain(
          {3, 3, 4},
          {convolution(5, 1, 1, Activation::Tanh), partitioner::Upsample{stride, -0.5, bilinear}}));
    }
  }
  check_gradients(
      chain({3, 3, 4}, {convolution(20, 1, 1, Activation::Tanh), partitioner::ChannelShuffle{4}}));
}

}  // namespace
