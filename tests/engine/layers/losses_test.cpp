// Losses and their gradients on one rank.

#include "partitioner/network/losses.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/loss_gradients.h"
#include <doctest/doctest.h>

#include "engine/base/random.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::NamedTensors;
using partitioner::Activation;
using partitioner::AvgPool;
using partitioner::Convolution;
using partitioner::Cost;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Softmax;

Network trunk() {
  Network network;
  network.image = {2, 6, 7};
  add_layer(network,
            Convolution{.filters = 5, .size = 3, .padding = 1, .activation = Activation::Tanh},
            {kImage});
  return network;
}

// Three classes, judged by cross-entropy.
void add_softmax_branch(Network& network) {
  add_layer(network, Convolution{.filters = 3, .activation = Activation::Linear}, {0});
  add_layer(network, AvgPool{}, {network.size() - 1});
  add_layer(network, Softmax{.temperature = 1.5, .scale = 0.4}, {network.size() - 1});
}

// As many, judged by the squared error.
void add_cost_branch(Network& network) {
  add_layer(network, Convolution{.filters = 3, .size = 3, .stride = 2}, {0});
  add_layer(network, AvgPool{}, {network.size() - 1});
  add_layer(network, Cost{.scale = 2}, {network.size() - 1});
}

constexpr Index kBatch = 3;

NamedTensors gradients_of(const Network& network, const NamedTensors& in) {
  return tests::loss_gradients(network,
                               partitioner::single_tile(network),
                               in,
                               tests::some_targets(kBatch, 3),
                               engine::Communicator::self());
}

// Of the loss along random directions; off by the square of the step, and by rounding over it.
void check_central_differences(const Network& network) {
  constexpr double kAlongStep = 1e-5;
  constexpr double kAlongTolerance = 2e-8;
  const NamedTensors in = tests::random_tensors(network, kBatch, 5);
  const NamedTensors out = gradients_of(network, in);
  for (const auto& [name, gradient] : out) {
    if (name == "loss") {
      continue;
    }
    const std::string moved_name = name == "input_gradient" ? "input" : name;
    double along = 0;
    NamedTensors ahead = in;
    NamedTensors behind = in;
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      const double direction = engine::random_normal(7, i);
      along += gradient.values[i] * direction;
      ahead.at(moved_name).values[i] += kAlongStep * direction;
      behind.at(moved_name).values[i] -= kAlongStep * direction;
    }
    const double difference = (gradients_of(network, ahead).at("loss").values.front() -
                               gradients_of(network, behind).at("loss").values.front()) /
                              (2 * kAlongStep);
    CHECK_MESSAGE(std::abs(difference - along) <= kAlongTolerance * std::max(1.0, std::abs(along)),
                  name);
  }
}

TEST_CASE("the gradient of several losses is the central difference of their sum") {
  Network network = trunk();
  add_softmax_branch(network);
  add_cost_branch(network);
  check_central_differences(network);
}

TEST_CASE("a loss whose map leads on to another one gets that one's gradient, too") {
  Network of_softmax = trunk();
  add_softmax_branch(of_softmax);
  Network of_cost = trunk();
  add_cost_branch(of_cost);
  for (Network network : {of_softmax, of_cost}) {
    const int judged = network.size() - 1;
    add_layer(network, Cost{}, {judged});
    add_layer(network, Convolution{.filters = 4, .activation = Activation::Tanh}, {judged});
    add_layer(network, Softmax{}, {network.size() - 1});
    REQUIRE(losses(network).size() == 2);
    REQUIRE(losses(network).front().gets_gradient);
    check_central_differences(network);
  }
}

// The tensors of layers from `first` on under the names of layers from `to` on.
NamedTensors renamed(const NamedTensors& in, int layers, int first, int to) {
  NamedTensors out = in;
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* kind : {"weight", "bias"}) {
      const std::string from = "layers." + std::to_string(first + layer) + '.' + kind;
      if (const auto found = in.find(from); found != in.end()) {
        out["layers." + std::to_string(to + layer) + '.' + kind] = found->second;
      }
    }
  }
  return out;
}

TEST_CASE("what branches share gets the sum of the gradients that each branch alone gives it") {
  Network both = trunk();
  add_softmax_branch(both);
  add_cost_branch(both);
  Network softmax_alone = trunk();
  add_softmax_branch(softmax_alone);
  Network cost_alone = trunk();
  add_cost_branch(cost_alone);
  const NamedTensors in = tests::random_tensors(both, kBatch, 9);
  const NamedTensors found = gradients_of(both, in);
  const NamedTensors one = gradients_of(softmax_alone, in);
  const NamedTensors other = gradients_of(cost_alone, renamed(in, 3, 4, 1));
  for (const char* name : {"loss", "input_gradient", "layers.0.weight", "layers.0.bias"}) {
    const std::vector<double>& sum = found.at(name).values;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      CHECK(sum[i] ==
            doctest::Approx(one.at(name).values[i] + other.at(name).values[i]).epsilon(1e-12));
    }
  }
  CHECK(found.at("layers.1.weight").values == one.at("layers.1.weight").values);
  CHECK(found.at("layers.4.weight").values == other.at("layers.1.weight").values);
}

TEST_CASE("images of which no class is known, and places without one, have no loss") {
  Network network = trunk();
  add_softmax_branch(network);
  const NamedTensors in = tests::random_tensors(network, kBatch, 5);
  const auto loss = [&](const engine::Targets& targets) {
    return tests::loss_gradients(network,
                                 partitioner::single_tile(network),
                                 in,
                                 targets,
                                 engine::Communicator::self())
        .at("loss")
        .values.front();
  };
  const engine::ImageTargets second{.label = 1};
  const engine::ImageTargets unknown{.boxes = {{.label = 1, .width = 1, .height = 1}}};
  CHECK(loss({std::nullopt, std::nullopt, std::nullopt}) == 0);
  CHECK(loss({unknown, std::nullopt, unknown}) == 0);
  CHECK(loss({unknown, second, std::nullopt}) == loss({std::nullopt, second, unknown}));
  CHECK(loss({unknown, second, std::nullopt}) > 0);
}

}  // namespace
