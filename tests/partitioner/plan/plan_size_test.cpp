#include "partitioner/plan/plan_size.h"

#include <doctest/doctest.h>

#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;

namespace {

Network network_of(Index side, int layers) {
  Network network;
  network.image = {3, side, side};
  for (int layer = 0; layer < layers; ++layer) {
    add_layer(network, Convolution{.filters = 3, .size = 1}, {layer - 1});
  }
  return network;
}

}  // namespace

TEST_CASE("plans of usual networks and clusters are made, of a thousand devices as well") {
  CHECK_NOTHROW(expect_plannable(network_of(224, 5000), 1, 256));
  CHECK_NOTHROW(expect_plannable(network_of(224, 200), 64, 256));
  CHECK_NOTHROW(expect_plannable(network_of(28, 5), 1000, 64));
}

TEST_CASE("more ranks than can be planned for are refused with the number that can") {
  try {
    expect_plannable(network_of(28, 100), 10000, 64);
    FAIL_CHECK("accepted");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("at most 282 ranks") != std::string::npos);
  }
  CHECK_NOTHROW(expect_plannable(network_of(28, 100), 282, 64));
  CHECK_THROWS_AS(expect_plannable(network_of(28, 100), 283, 64), InputError);
}

TEST_CASE("a search is for fewer layers than a plan by hand, and for more ranks") {
  CHECK_NOTHROW(expect_searchable(network_of(28, 100), 1000, 64));
  CHECK(!is_plannable(network_of(28, 100), 1000, 64));
  CHECK_THROWS_AS(expect_searchable(network_of(28, 100), 5000, 64), InputError);
  CHECK(is_plannable(network_of(28, 2000), 4, 64));
  CHECK_THROWS_AS(expect_searchable(network_of(28, 2000), 4, 64), InputError);
}

TEST_CASE("values and operations that sums could not hold are refused") {
  CHECK_THROWS_AS(expect_plannable(network_of(400'000, 1), 1, 1 << 20), InputError);
  CHECK_THROWS_AS(expect_plannable(network_of(400'000, 1000), 1, 4), InputError);
}
