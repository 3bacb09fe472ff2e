// The network that a request makes of a model file.

#include "engine/session/model_setup.h"

#include <string>

#include "tests/support/refusals.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using partitioner::kImage;
using partitioner::Network;

Network classifier() {
  Network network;
  network.image = {3, 16, 16};
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, partitioner::Connected{.outputs = 2}, {1});
  add_layer(network, partitioner::Softmax{}, {2});
  return network;
}

}  // namespace

TEST_CASE("a resized network has the layers of before on other maps, and what was frozen") {
  Network network = classifier();
  partitioner::freeze(network, 0);
  const Network larger = engine::resized(network, "32x24");
  CHECK(larger.image == partitioner::MapShape{3, 32, 24});
  CHECK(larger.size() == network.size());
  CHECK(larger.shape(1) == partitioner::MapShape{4, 16, 12});
  CHECK(last_frozen(larger) == 0);
  CHECK(engine::resized(network, "").image == network.image);
}

TEST_CASE("layers are frozen by number or by the name of their tensors") {
  CHECK(last_frozen(engine::frozen(classifier(), "0")) == 0);
  CHECK(last_frozen(engine::frozen(classifier(), "layers.0")) == 0);
  CHECK(last_frozen(engine::frozen(engine::frozen(classifier(), "0"), "none")) == -1);
  CHECK(last_frozen(engine::frozen(classifier(), "")) == -1);
}

TEST_CASE("what cannot be frozen is refused, with the layers that may be meant") {
  const auto refusal = [](const std::string& layer) {
    return tests::input_error_of([&] { (void)engine::frozen(classifier(), layer); });
  };
  CHECK(tests::has(refusal("9"), "from 0 to 3"));
  CHECK(tests::has(refusal("maxpol"), "(maxpool: 1)"));
  CHECK(tests::has(refusal("-1"), "is not a layer"));
  CHECK(tests::has(refusal("3"), "--freeze 3"));  // nothing is left to learn
}

TEST_CASE("a network without a loss cannot be trained") {
  Network network;
  network.image = {3, 8, 8};
  add_layer(network, partitioner::Convolution{.filters = 4, .size = 3, .padding = 1}, {kImage});
  CHECK(tests::has(tests::input_error_of([&] { engine::expect_loss(network, "net.cfg"); }),
                   "net.cfg: the network has no loss"));
  CHECK_NOTHROW(engine::expect_loss(classifier(), "net.cfg"));
}
