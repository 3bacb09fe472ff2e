#include "partitioner/network/input_sizes.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

namespace tessera::partitioner {

namespace {

// As train_detector() of AlexeyAB's Darknet writes it.
InputSize as_darknet(const InputSize& configured, double scale, Index step) {
  const auto side = [&](Index before) {
    const auto steps = static_cast<double>(before) * scale / static_cast<double>(step);
    return std::max<Index>(static_cast<Index>(std::roundl(steps + 1)), 1) * step;
  };
  const InputSize size{side(configured.rows), side(configured.cols)};
  return scale < 1 && (size.rows > configured.rows || size.cols > configured.cols) ? configured
                                                                                   : size;
}

std::vector<std::string> texts_of(const InputSizes& sizes) {
  std::vector<std::string> texts;
  for (const InputSizes::Share& share : sizes.shares()) {
    texts.push_back(to_text(share.size));
  }
  return texts;
}

Network strided_trunk() {
  Network network;
  network.image = {3, 64, 64};
  add_layer(network, Convolution{.filters = 8, .size = 3, .stride = 2, .padding = 1}, {kImage});
  add_layer(network, MaxPool{.size = 2, .stride = 2}, {0});
  add_layer(network, Convolution{.filters = 8, .size = 3, .stride = 2, .padding = 1}, {1});
  return network;
}

}  // namespace

TEST_CASE("inputs of 416 pixels have the sizes of YOLOv2 and v3") {
  const InputSizes sizes({416, 416}, 1.4, 32);
  CHECK(texts_of(sizes) == std::vector<std::string>{"320x320",
                                                    "352x352",
                                                    "384x384",
                                                    "416x416",
                                                    "448x448",
                                                    "480x480",
                                                    "512x512",
                                                    "544x544",
                                                    "576x576",
                                                    "608x608"});
  CHECK(sizes.largest() == InputSize{608, 608});
  CHECK(sizes.smallest() == InputSize{320, 320});
}

TEST_CASE("each scale has the size that Darknet gives it") {
  struct Case {
    InputSize configured;
    double factor;
    Index step;
  };
  for (const Case& each : {Case{{416, 416}, 1.4, 32},
                           Case{{300, 500}, 1.4, 32},
                           Case{{48, 64}, 1.2, 8},
                           Case{{20, 20}, 3, 32}}) {
    const InputSizes sizes(each.configured, each.factor, each.step);
    constexpr int kScales = 2001;
    for (int i = 0; i < kScales; ++i) {
      const double scale = 1 / each.factor + (each.factor - 1 / each.factor) * (i + 0.37) / kScales;
      CAPTURE(scale);
      REQUIRE(sizes.at(scale) == as_darknet(each.configured, scale, each.step));
    }
    CHECK(sizes.largest() == as_darknet(each.configured, each.factor, each.step));
    CHECK(sizes.at(each.factor) == sizes.largest());
  }
}

TEST_CASE("shares of sizes are how often they are drawn") {
  const InputSizes sizes({300, 500}, 1.4, 32);
  double sum = 0;
  for (const InputSizes::Share& share : sizes.shares()) {
    sum += share.probability;
    int drawn = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double scale = 1 + 0.4 * (i + 0.5) / kDraws;
      drawn +=
          (sizes.at(scale) == share.size ? 1 : 0) + (sizes.at(1 / scale) == share.size ? 1 : 0);
    }
    CHECK(share.probability == doctest::Approx(drawn / (2.0 * kDraws)).epsilon(0.01));
  }
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE("steps so small that there would be very many sizes are refused") {
  CHECK_THROWS_AS(InputSizes({4096, 4096}, 1.4, 1), std::invalid_argument);
  CHECK_THROWS_AS(InputSizes({Index{1} << 40, 10}, 1.4, 1), std::invalid_argument);
  CHECK_NOTHROW(InputSizes({48, 48}, 1.4, 1));
}

TEST_CASE("the stride of a network is that of its coarsest map, whatever becomes finer again") {
  Network network = strided_trunk();
  CHECK(total_stride(network) == 8);
  add_layer(network, Upsample{.stride = 2}, {2});
  add_layer(network, Route{}, {3, 1});
  CHECK(total_stride(network) == 8);
  add_layer(network, SpaceToDepth{.stride = 4}, {4});
  CHECK(total_stride(network) == 16);
  add_layer(network, AvgPool{}, {4});  // a single cell
  add_layer(network, Convolution{.filters = 16, .size = 1}, {6});
  add_layer(network, ScaleChannels{}, {7, 4});
  CHECK(total_stride(network) == 16);
}

TEST_CASE("strides beyond any map have a product, too") {
  Network network;
  network.image = {1, 8, 8};
  for (int layer = 0; layer < 4; ++layer) {
    add_layer(
        network, Convolution{.filters = 1, .size = 1, .stride = (Index{1} << 31) - 1}, {layer - 1});
  }
  CHECK(total_stride(network) > 0);
}

TEST_CASE("another input leaves parameters as they are, or is refused") {
  Network network = strided_trunk();
  network.layers[2].learning.rate_factor = 3;
  network.max_gradient_norm = 10;
  freeze(network, 0);
  const Network larger = with_input_of_same_parameters(network, {96, 80});
  CHECK(larger.image == MapShape{3, 96, 80});
  CHECK(larger.layer(2).output == MapShape{8, 12, 10});
  CHECK(larger.layer(2).learning == network.layer(2).learning);
  CHECK(last_frozen(larger) == 0);
  CHECK(larger.max_gradient_norm == 10);

  Network pooled = network;
  add_layer(pooled, AvgPool{}, {2});
  add_layer(pooled, Connected{.outputs = 4}, {3});
  CHECK_NOTHROW((void)with_input_of_same_parameters(pooled, {96, 80}));
  for (const Operation& fixed :
       {Operation(Connected{.outputs = 4}), Operation(Local{.filters = 2, .size = 3})}) {
    Network dense = network;
    add_layer(dense, fixed, {2});
    CHECK_NOTHROW((void)with_input(dense, {96, 80}));
    CHECK_THROWS_WITH_AS((void)with_input_of_same_parameters(dense, {96, 80}),
                         doctest::Contains("layer 3 ("),
                         std::invalid_argument);
  }
}

}  // namespace tessera::partitioner
