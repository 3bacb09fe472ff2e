#include "partitioner/network/network.h"

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/support/cells_read.h"
#include "tests/support/chain.h"
#include "tests/support/sanitized.h"
#include <doctest/doctest.h>

namespace tessera::partitioner {

namespace {

class Draws {
 public:
  explicit Draws(unsigned seed) : generator_(seed) {}

  Index between(Index least, Index most) {
    return least + static_cast<Index>(generator_() % static_cast<std::uint64_t>(most - least + 1));
  }

  Range within(Index size) {
    const Index begin = between(0, size - 1);
    return {begin, between(begin + 1, size)};
  }

  Region within(const Region& whole) {
    return {within(whole.images.size()),
            within(whole.channels.size()),
            within(whole.rows.size()),
            within(whole.cols.size())};
  }

 private:
  std::mt19937_64 generator_;
};

constexpr Index kImages = 2;

// So many that the channels of a head are those that the layer before it may have.
Index draw_classes(Draws& draws) {
  return draws.between(1, 7);
}

Operation draw_operation(Draws& draws, std::size_t kind) {
  const Index size = draws.between(1, 5);
  const Index stride = draws.between(1, 4);
  const Index groups = draws.between(1, 3);
  switch (kind) {
    case 0:
      return Convolution{.filters = groups * draws.between(1, 3),
                         .size = size,
                         .stride = stride,
                         .padding = draws.between(0, size - 1),
                         .groups = groups,
                         .dilation = draws.between(1, 3),
                         .more_padding = {draws.between(0, 2), draws.between(-1, 1)}};
    case 1:
      return MaxPool{size,
                     {stride, draws.between(1, 4)},
                     {draws.between(0, 2 * size - 1), draws.between(0, size)}};
    case 2:
      return AvgPool{};
    case 3:
      return Connected{.outputs = draws.between(1, 6)};
    case 4:
      return Dropout{};
    case 5:
      return Softmax{.groups = draws.between(1, 6)};
    case 6:
      return Softmax{.spatial = true};
    case 7:
      return Cost{};
    case 8:
      return Shortcut{};
    case 9:
      return Route{groups, draws.between(0, groups - 1)};
    case 10:
      return Upsample{.stride = stride, .bilinear = draws.between(0, 1) == 1};
    case 11:
      return Reorg{stride, draws.between(0, 1) == 1};
    case 12:
      return SpaceToDepth{stride};
    case 13:
      return ChannelPool{draws.between(1, 6)};
    case 14:
      return Sam{};
    case 15:
      return ScaleChannels{.by_place = draws.between(0, 1) == 1};
    case 16:
      return Local{draws.between(1, 3), size, stride, draws.between(0, size - 1)};
    case 17:
      return Crop{};
    case 18:
      return YoloHead{.classes = draw_classes(draws), .anchors = {{10, 20}}, .mask = {0}};
    case 21:
      return Deconvolution{.filters = draws.between(1, 3),
                           .size = {size, draws.between(1, 4)},
                           .stride = {stride, draws.between(1, 3)},
                           .padding = {draws.between(0, 2), draws.between(0, 1)},
                           .more_padding = {draws.between(-1, 1), draws.between(0, 1)}};
    case 20:
      return ChannelShuffle{groups};
    case 19:
      return RegionHead{.classes = draw_classes(draws), .anchors = {{1, 2}}};
    case 22:
      return YoloxHead{.classes = draw_classes(draws)};
    default:
      return GridHead{.side = 1, .boxes = 1, .classes = draw_classes(draws)};
  }
}

constexpr std::size_t kKinds = 24;

// A network whose last layer is of the given kind: layers 0 and 1 make maps of different shapes for
// it to read.
Network draw_network(Draws& draws, std::size_t kind) {
  for (;;) {
    Network network;
    network.image = {draws.between(1, 6), draws.between(1, 12), draws.between(1, 12)};
    const Operation operation = draw_operation(draws, kind);
    try {
      if (std::holds_alternative<Crop>(operation)) {
        add_layer(network, operation, {kImage});
        return network;
      }
      add_layer(network, Convolution{.filters = draws.between(1, 12)}, {kImage});
      if (std::holds_alternative<Sam>(operation)) {
        add_layer(network, operation, {0, 0});
        return network;
      }
      if (const auto* scale = std::get_if<ScaleChannels>(&operation)) {
        if (scale->by_place) {
          add_layer(network, Convolution{.filters = 1}, {kImage});
        } else {
          add_layer(network, AvgPool{}, {0});
        }
        add_layer(network, operation, {1, 0});
        return network;
      }
      const bool coarser = std::holds_alternative<Shortcut>(operation) && draws.between(0, 1) == 1;
      add_layer(
          network,
          Convolution{.filters = draws.between(1, 12), .stride = coarser ? draws.between(1, 3) : 1},
          {kImage});
      std::vector<int> inputs = {1};
      if (std::holds_alternative<Shortcut>(operation)) {
        inputs = draws.between(0, 1) == 1 ? std::vector<int>{1, 0} : std::vector<int>{0, 1};
      } else if (std::holds_alternative<Route>(operation)) {
        inputs = {0, 1, 0};
      }
      add_layer(network, operation, inputs);
      return network;
    } catch (const std::invalid_argument&) {
      continue;  // shapes that do not fit: draw others
    }
  }
}

// The kinds whose rule is the smallest box; the others read more than that by decision.
bool has_smallest_box(const Operation& operation) {
  return !std::holds_alternative<Softmax>(operation) && !std::holds_alternative<Reorg>(operation);
}

Network image_of(Index channels, Index rows, Index cols) {
  Network network;
  network.image = {channels, rows, cols};
  return network;
}

void check_refused(Network network, const Operation& operation, const char* part) {
  CHECK_THROWS_WITH_AS(add_layer(network, operation, {network.size() - 1}),
                       doctest::Contains(part),
                       std::invalid_argument);
}

}  // namespace

TEST_CASE("what a region requires is the smallest box around the cells that its outputs read") {
  Draws draws(1);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (int trial = 0; trial < (tests::kSanitized ? 50 : 150); ++trial) {
      const Network network = draw_network(draws, kind);
      const int last = network.size() - 1;
      const LayerSpec& layer = network.layer(last);
      const Region output = draws.within(whole_map(network, last, kImages));
      CAPTURE(kind_name(layer.operation));
      CAPTURE(trial);
      for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
        const Region found = required_input(network, last, input, output);
        const Region read = tests::box_of_cells_read(network, last, input, output);
        CHECK(contains(found, read));
        CHECK(found.empty() == read.empty());
        if (has_smallest_box(layer.operation)) {
          CHECK(contains(read, found));
        }
      }
    }
  }
}

TEST_CASE("only convolutions require cells outside the map") {
  Draws draws(2);
  for (std::size_t kind = 1; kind < kKinds; ++kind) {
    for (int trial = 0; trial < 50; ++trial) {
      const Network network = draw_network(draws, kind);
      const int last = network.size() - 1;
      const Region output = draws.within(whole_map(network, last, kImages));
      for (std::size_t input = 0; input < network.layer(last).inputs.size(); ++input) {
        const Region whole = whole_map(network, network.layer(last).inputs[input], kImages);
        CHECK(contains(whole, required_input(network, last, input, output)));
      }
    }
  }
}

TEST_CASE("a part of a region requires a part of what the region requires") {
  Draws draws(3);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (int trial = 0; trial < (tests::kSanitized ? 30 : 100); ++trial) {
      const Network network = draw_network(draws, kind);
      const int last = network.size() - 1;
      const Region whole = whole_map(network, last, kImages);
      const Region output = draws.within(whole);
      const Region part = intersect(output, draws.within(whole));
      for (std::size_t input = 0; input < network.layer(last).inputs.size(); ++input) {
        CHECK(contains(required_input(network, last, input, output),
                       required_input(network, last, input, part)));
      }
    }
  }
}

TEST_CASE("an empty region requires nothing of any layer") {
  Draws draws(4);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Network network = draw_network(draws, kind);
    const int last = network.size() - 1;
    Region output = whole_map(network, last, kImages);
    output.rows = {7, 7};
    CHECK(required_input(network, last, 0, output) == Region{});
  }
}

TEST_CASE("the multiply-adds of disjoint parts add up to those of the whole") {
  Draws draws(5);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (int trial = 0; trial < 20; ++trial) {
      const Network network = draw_network(draws, kind);
      const int last = network.size() - 1;
      const Region whole = whole_map(network, last, kImages);
      const Region part = draws.within(whole);
      Index sum = multiply_adds(network, last, part);
      for (const Region& rest : subtract(whole, part)) {
        sum += multiply_adds(network, last, rest);
      }
      CHECK(sum == multiply_adds(network, last, whole));
    }
  }
}

TEST_CASE("parameters follow from filters, groups and batch normalisation") {
  Network network = image_of(6, 5, 4);
  add_layer(network, Convolution{.filters = 9, .size = 2, .groups = 3}, {kImage});
  add_layer(network, Connected{.outputs = 7, .batch_normalize = true}, {kImage});
  add_layer(network, AvgPool{}, {0});
  const LayerParameters convolution = layer_parameters(network, 0);
  CHECK(convolution.weight.channels == 9);
  CHECK(convolution.weight.row == 2 * 2 * 2);
  CHECK(convolution.bias.channels == 9);
  CHECK(convolution.scale.channels == 0);
  const LayerParameters connected = layer_parameters(network, 1);
  CHECK(connected.weight.row == 6 * 5 * 4);
  CHECK(connected.variance.channels == 7);
  add_layer(network, Local{.filters = 5, .size = 2}, {kImage});
  const LayerParameters local = layer_parameters(network, 3);
  CHECK(local.weight.channels == 5);
  CHECK(local.weight.row == 4 * 3 * 6 * 2 * 2);
  CHECK(local.bias.row == 4 * 3);
  CHECK(multiply_adds(network, 3, whole_map(network, 3, 1)) == 5 * local.weight.row);
  CHECK(layer_parameters(network, 2).weight.channels == 0);
  CHECK(layer_parameters(network, 2).bias.channels == 0);
}

TEST_CASE("a window that lies wholly outside the map is refused") {
  const Network network = image_of(1, 5, 9);
  check_refused(network, Convolution{.size = 2, .padding = 2}, "first convolution window");
  check_refused(network, Convolution{.size = 3, .stride = 4, .padding = 3}, "first convolution");
  check_refused(network, Convolution{.size = 7}, "does not fit");
  check_refused(network, MaxPool{.size = 2, .stride = 1, .padding = 4}, "first pooling window");
  // 5 + 3 cells: windows start at -1, 1, 3, 5, of which the last is outside, though the first is
  // not.
  check_refused(network, MaxPool{.size = 2, .stride = 2, .padding = 3}, "last pooling window");
  Network accepted = network;
  CHECK_NOTHROW(add_layer(accepted, Convolution{.size = 2, .stride = 7, .padding = 1}, {kImage}));
}

TEST_CASE("shapes that do not fit are refused with what to change") {
  const Network network = image_of(6, 4, 6);
  check_refused(network, Convolution{.filters = 4, .groups = 4}, "groups=4");
  check_refused(network, Convolution{.filters = 4, .groups = 3}, "filters=4");
  check_refused(network, Convolution{.filters = 0}, "filters=0");
  check_refused(network, Convolution{.stride = 0}, "stride=0");
  check_refused(network, Convolution{.padding = -1}, "padding=-1");
  check_refused(network, Softmax{.groups = 5}, "groups=5");
  check_refused(network, Softmax{.temperature = 0}, "temperature");
  check_refused(network, Softmax{.temperature = std::numeric_limits<double>::quiet_NaN()}, "temp");
  check_refused(network, Dropout{.probability = 1}, "probability");
  check_refused(network, Route{.groups = 4, .group = 0}, "groups=4");
  check_refused(network, Route{.groups = 2, .group = 2}, "group_id=2");
  check_refused(network, Reorg{.stride = 2}, "reorg");
  check_refused(network, SpaceToDepth{.stride = 4}, "space_to_depth");
  check_refused(network, ChannelShuffle{.groups = 5}, "groups=5 does not divide");
  check_refused(network, Deconvolution{.padding = 4}, "has no cells");
  check_refused(network, Deconvolution{.stride = 2, .more_padding = -2}, "padding_end=-2");
  check_refused(network, Deconvolution{.stride = 2000000000}, "longer than");
  Network two = network;
  add_layer(two, Upsample{.stride = 2}, {kImage});
  check_refused(two, Crop{}, "first layer");
  add_layer(two, Convolution{.stride = 3}, {kImage});  // 2 x 2 beside 8 x 12
  CHECK_THROWS_AS(add_layer(two, Shortcut{}, {0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(add_layer(two, Route{}, {0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(add_layer(two, Route{}, {}), std::invalid_argument);
  CHECK_THROWS_AS(add_layer(two, Route{}, {2}), std::invalid_argument);
  CHECK_THROWS_AS(add_layer(two, Shortcut{}, {0}), std::invalid_argument);
  const auto refuse = [&](const Operation& operation, std::vector<int> inputs, const char* part) {
    CHECK_THROWS_WITH_AS(add_layer(two, operation, std::move(inputs)),
                         doctest::Contains(part),
                         std::invalid_argument);
  };
  refuse(Shortcut{}, {0, 0, 1}, "same shape");
  refuse(Sam{}, {0, 1}, "same shape");
  refuse(ScaleChannels{}, {1, 0}, "factors of 6x1x1");
  refuse(ScaleChannels{.by_place = true}, {1, 0}, "factors of 1x8x12");
  refuse(ChannelPool{.outputs = 7}, {0}, "out_channels=7");
  refuse(Convolution{.size = 3, .dilation = 6}, {0}, "does not fit");
}

TEST_CASE("sizes too large to address are refused, not overflowed") {
  constexpr Index kHuge = Index{1} << 40;
  constexpr Index kLargest = std::numeric_limits<Index>::max();
  const Network network = image_of(3, 5, 5);
  check_refused(network, Convolution{.filters = 9999999999}, "filters=9999999999");
  check_refused(network, Convolution{.size = kHuge}, "size");
  check_refused(network, Convolution{.padding = kLargest}, "padding");
  check_refused(network, MaxPool{.size = kLargest, .stride = 1, .padding = kLargest}, "size");
  check_refused(network, Connected{.outputs = 2000000000000}, "output");
  check_refused(network, Upsample{.stride = 2000000000}, "longer than");
  check_refused(network, SpaceToDepth{.stride = 2000000000}, "space_to_depth");
  check_refused(image_of(kLargest, 2, 2), AvgPool{}, "longer than");
  check_refused(image_of(Index{1} << 32, Index{1} << 32, 1), AvgPool{}, "longer than");
  check_refused(image_of(Index{1} << 30, Index{1} << 30, 1), AvgPool{}, "larger than");
  check_refused(image_of(0, 2, 2), AvgPool{}, "no cells");
  check_refused(image_of(3, -2, -2), AvgPool{}, "no cells");
}

namespace {

// Layer 4 joins a frozen map and one that learns; layers 2 and 3 read frozen maps alone.
Network joined_trunk() {
  Network network = tests::chain(
      {3, 8, 8}, {tests::convolution(4, 3), tests::convolution(4, 3), Dropout{.probability = 0.5}});
  add_layer(network, tests::convolution(4, 1), {0});
  add_layer(network, Route{}, {2, 3});
  add_layer(network, tests::convolution(2, 1), {4});
  return network;
}

}  // namespace

TEST_CASE("the backward pass comes to layers that learn, and to those that depend on them") {
  Network network = joined_trunk();
  freeze(network, 1);
  CHECK(last_frozen(network) == 1);
  CHECK(!network.takes_gradient(kImage));
  const std::vector<bool> expected{false, false, false, true, true, true};
  for (int layer = 0; layer < network.size(); ++layer) {
    CAPTURE(layer);
    CHECK(network.layer(layer).frozen == (layer <= 1));
    CHECK(network.takes_gradient(layer) == expected[static_cast<std::size_t>(layer)]);
  }
  freeze(network, -1);
  CHECK(last_frozen(network) == -1);
  CHECK(network.takes_gradient(kImage));
  CHECK(network.takes_gradient(2));
}

TEST_CASE("layers that do not exist, or all that learn, cannot be frozen") {
  Network network = joined_trunk();
  CHECK_THROWS_WITH(freeze(network, 6), "layer 6 does not exist: the layers are 0 to 5");
  CHECK_THROWS_WITH(freeze(network, 5),
                    "with all layers up to 5 frozen nothing is left to learn: freeze layer 4 at "
                    "most");
  CHECK(last_frozen(network) == -1);
}

TEST_CASE("a refused layer leaves the network as it was") {
  Network network = image_of(3, 5, 5);
  add_layer(network, Convolution{}, {kImage});
  CHECK_THROWS_AS(add_layer(network, Convolution{.size = 9}, {0}), std::invalid_argument);
  CHECK(network.size() == 1);
}

}  // namespace tessera::partitioner
