#include "partitioner/network/frozen_trunk.h"

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::Convolution;
using partitioner::Dropout;
using partitioner::frozen_trunk;
using partitioner::FrozenTrunk;
using partitioner::kImage;
using partitioner::Network;

// A convolution, a pool, another convolution; then, of the layers behind them, one that learns.
Network three_layers() {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Convolution{.filters = 4, .size = 3, .padding = 1}, {1});
  return network;
}

TEST_CASE("the trunk ends where the first layer learns") {
  Network network = three_layers();
  CHECK(frozen_trunk(network).empty());
  freeze(network, 0);
  CHECK(frozen_trunk(network) == FrozenTrunk{1, {1}});  // the pool has nothing to learn
}

TEST_CASE("all maps count that are read from behind the trunk") {
  Network network = three_layers();
  add_layer(network, Convolution{.filters = 6, .size = 1}, {2});
  add_layer(network, partitioner::Route{}, {3, 1});
  add_layer(network, Convolution{.filters = 2, .size = 1}, {4});
  freeze(network, 2);
  CHECK(frozen_trunk(network) == FrozenTrunk{2, {1, 2}});
}

TEST_CASE("a layer that drops out is no part of it unless it is frozen") {
  Network network = three_layers();
  add_layer(network, Dropout{.probability = 0.5F}, {2});
  add_layer(network, Convolution{.filters = 2, .size = 1}, {3});
  freeze(network, 2);
  CHECK(frozen_trunk(network).last == 2);
  freeze(network, 3);
  CHECK(frozen_trunk(network).last == 3);
}

TEST_CASE("it ends before products with a dense matrix") {
  Network network = three_layers();
  add_layer(network, partitioner::Connected{.outputs = 5}, {2});
  add_layer(network, partitioner::Connected{.outputs = 3}, {3});
  freeze(network, 3);
  CHECK(frozen_trunk(network) == FrozenTrunk{2, {2}});
}

TEST_CASE("a loss is no part of it, nor what comes behind one") {
  Network network = three_layers();
  add_layer(network, partitioner::Softmax{}, {2});
  add_layer(network, Convolution{.filters = 2, .size = 1}, {1});
  add_layer(network, Convolution{.filters = 2, .size = 1}, {4});
  add_layer(network, partitioner::Softmax{}, {5});
  freeze(network, 4);
  CHECK(frozen_trunk(network) == FrozenTrunk{2, {1, 2}});
}

TEST_CASE("there is none where a later layer reads the image") {
  Network network = three_layers();
  add_layer(network, Convolution{.filters = 4, .size = 3, .stride = 2, .padding = 1}, {kImage});
  add_layer(network, partitioner::Shortcut{}, {3, 2});
  freeze(network, 2);
  CHECK(frozen_trunk(network).empty());
}

}  // namespace
