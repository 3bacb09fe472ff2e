#include "engine/execution/activation_memory.h"

#include <algorithm>

#include "tests/support/chain.h"
#include "tests/support/naive.h"
#include <doctest/doctest.h>

#include "partitioner/network/layer_traits.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::ActivationMemory;
using engine::Stage;
using engine::View;
using partitioner::kImage;
using partitioner::Network;
using partitioner::Plan;
using tests::chain;
using tests::convolution;

constexpr double kLeftBehind = 3;

// Of a network on one rank; every cell has something in it.
struct Filled {
  Network network;
  Plan plan;
  ActivationMemory<double> memory;

  explicit Filled(const Network& of)
      : network(of),
        plan(make_plan(network, single_tile(network), 2)),
        memory(network, plan, 0, {.scalar_bytes = sizeof(double)}) {
    for (int map = kImage; map < network.size(); ++map) {
      fill(memory.map(map));
      fill(memory.map_gradient(map));
    }
  }

  static void fill(const View<double>& view) {
    if (view.data != nullptr) {
      std::fill_n(view.data, blocked_volume(view.region), kLeftBehind);
    }
  }
};

Network padded() {
  return chain({3, 6, 5}, {convolution(4, 3), convolution(4, 5), convolution(2, 1)});
}

}  // namespace

TEST_CASE("cells outside a map are 0 once the map is needed, and those inside stay as they are") {
  Filled filled(padded());
  filled.memory.set_time(kImage - 1);
  for (int map = kImage; map < filled.network.size(); ++map) {
    filled.memory.advance(map);
    CHECK(filled.memory.time() == map);
    const View<double> cells = filled.memory.map(map);
    const Region whole = whole_map(filled.network, map, filled.plan.batch);
    tests::for_each_cell(cells.region, [&](Index n, Index c, Index row, Index col) {
      const bool inside =
          contains(whole, Region{{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}});
      CHECK(cells.at(n, c, row, col) == (inside ? kLeftBehind : 0));
    });
    Filled::fill(cells);
  }
}

TEST_CASE("a gradient starts with 0 unless its layer assigns it") {
  for (const bool assigns : {false, true}) {
    Filled filled(padded());
    const int reader = 1;  // of map 0, whose gradient begins with its backward pass
    REQUIRE(filled.memory.begun_gradients(reader) == std::vector<bool>{true});
    if (assigns) {
      filled.memory.leave_gradients_to(reader);
    }
    filled.memory.set_time(gradient_time(filled.network, reader));
    const View<double> gradient = filled.memory.map_gradient(0);
    Filled::fill(gradient);
    filled.memory.advance(gradient_time(filled.network, reader) + 1);
    CHECK(gradient.at(1, 3, 5, 4) == (assigns ? kLeftBehind : 0));
  }
}

TEST_CASE("layers see the buffers of their maps") {
  Filled filled(padded());
  for (int layer = 0; layer < filled.network.size(); ++layer) {
    const engine::LayerViews<double> views = filled.memory.views(layer, Stage::Forward);
    CHECK(views.inputs.at(0).data == filled.memory.map(layer - 1).data);
    CHECK(views.output.data == filled.memory.map(layer).data);
    CHECK(views.output_gradient.data == filled.memory.map_gradient(layer).data);
  }
  CHECK(filled.memory.image().data == filled.memory.map(kImage).data);
  CHECK(filled.memory.map_gradient(kImage).data == nullptr);
}
