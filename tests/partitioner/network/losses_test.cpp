#include "partitioner/network/losses.h"

#include <doctest/doctest.h>

namespace tessera::partitioner {

namespace {

// Layer 0 is a convolution; each operation then reads the layer before it.
Network trunk(const std::vector<Operation>& more = {}) {
  Network network;
  network.image = {3, 6, 6};
  add_layer(network, Convolution{.filters = 4}, {kImage});
  for (const Operation& operation : more) {
    add_layer(network, operation, {network.size() - 1});
  }
  return network;
}

constexpr LossForm kCrossEntropy = LossForm::CrossEntropy;
constexpr LossForm kSquaredError = LossForm::SquaredError;

}  // namespace

TEST_CASE("a softmax that ends the network is its loss, with a cost or dropouts above it or not") {
  const std::vector<Loss> expected{{.layer = 1, .form = kCrossEntropy}};
  CHECK(losses(trunk({Softmax{}})) == expected);
  CHECK(losses(trunk({Softmax{}, Cost{.scale = 3}})) == expected);
  CHECK(losses(trunk({Softmax{}, Dropout{}, Cost{}, Cost{}, Dropout{}})) == expected);
  CHECK(losses(trunk({Softmax{.scale = 0.5}})).front().weight == 0.5);
}

TEST_CASE("a cost that ends the network is its loss, of several the first") {
  const std::vector<Loss> expected{{.layer = 1, .form = kSquaredError, .weight = 3}};
  CHECK(losses(trunk({Cost{.scale = 3}})) == expected);
  CHECK(losses(trunk({Cost{.scale = 3}, Dropout{}, Cost{}})) == expected);
  CHECK(losses(trunk({Dropout{}, Cost{.scale = 3}})).front().layer == 2);
}

TEST_CASE("what leads on to a layer without a loss is none") {
  CHECK(losses(trunk()).empty());
  CHECK(losses(trunk({Dropout{}})).empty());
  CHECK(losses(trunk({Softmax{}, Convolution{}})).empty());
  CHECK(losses(trunk({Cost{}, MaxPool{}})).empty());
  CHECK(losses(Network{}).empty());
}

TEST_CASE("each branch that ends in a softmax or a cost has a loss, in the order of layers") {
  Network network = trunk({Softmax{}});                // 1
  add_layer(network, Convolution{.filters = 2}, {0});  // 2
  add_layer(network, Cost{.scale = 2}, {2});           // 3
  add_layer(network, MaxPool{}, {0});                  // 4, without a loss
  CHECK(losses(network) == std::vector<Loss>{{.layer = 1, .form = kCrossEntropy},
                                             {.layer = 3, .form = kSquaredError, .weight = 2}});
  CHECK(output_layer(network) == 3);
  CHECK(loss_of(network, 3) == losses(network)[1]);
  CHECK(!loss_of(network, 4));
}

TEST_CASE("a layer that two branches are judged by has one loss") {
  Network network = trunk({Softmax{}});
  add_layer(network, Cost{}, {1});
  add_layer(network, Cost{}, {1});
  CHECK(losses(network) == std::vector<Loss>{{.layer = 1, .form = kCrossEntropy}});
}

TEST_CASE("a loss gets the gradient of others where its map leads on to them") {
  Network network = trunk({Softmax{}, Cost{}});        // 1, 2
  add_layer(network, Convolution{.filters = 2}, {1});  // 3
  add_layer(network, Softmax{}, {3});                  // 4
  const std::vector<Loss> found = losses(network);
  REQUIRE(found.size() == 2);
  CHECK(found[0].layer == 1);
  CHECK(found[0].gets_gradient);
  CHECK(found[1].layer == 4);
  CHECK(!found[1].gets_gradient);
}

TEST_CASE("without a loss the last layer is what a network says") {
  CHECK(output_layer(trunk({MaxPool{}})) == 1);
  CHECK(output_layer(trunk({Softmax{}, Cost{}})) == 1);
}

TEST_CASE("what a network with a head says are its heads, whatever else it is judged by") {
  Network network;
  network.image = {8, 4, 4};
  add_layer(network, YoloHead{.classes = 3, .anchors = {{10, 20}}, .mask = {0}}, {kImage});
  add_layer(network, AvgPool{}, {kImage});
  add_layer(network, Softmax{}, {1});
  CHECK(losses(network).size() == 2);
  CHECK(is_detector(network));
  CHECK(output_layers(network) == std::vector<int>{0});
  CHECK(classes_of(network, 0) == 3);
  CHECK(classes_of(network, 2) == 8);
}

}  // namespace tessera::partitioner
