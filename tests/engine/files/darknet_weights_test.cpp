#include "engine/files/darknet_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/darknet_weights.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "partitioner/base/errors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::DarknetWeights;
using engine::DarknetWeightsReader;
using engine::LayerWeights;
using engine::write_darknet_weights;
using partitioner::add_layer;
using partitioner::kImage;
using partitioner::Network;
using tests::bytes_of;
using tests::has;
using tests::put_bytes;
using tests::read_darknet_weights;
using tests::TemporaryFolder;

// A layer of each kind that has parameters, and two that have none.
Network small_network() {
  Network network;
  network.image = {.channels = 4, .rows = 5, .cols = 3};
  add_layer(network,
            partitioner::Convolution{
                .filters = 6, .size = 3, .padding = 1, .groups = 2, .batch_normalize = true},
            {kImage});
  add_layer(network, partitioner::MaxPool{.size = 2, .stride = 2, .padding = 1}, {0});
  add_layer(network, partitioner::Convolution{.filters = 2, .size = 1}, {1});
  add_layer(network, partitioner::Connected{.outputs = 5, .batch_normalize = true}, {2});
  add_layer(network, partitioner::Connected{.outputs = 3}, {3});
  add_layer(network, partitioner::Softmax{}, {4});
  return network;
}

constexpr std::ptrdiff_t kLastFloats = 3 + 3 * 5;  // parameters of layer 4

std::string header(std::int32_t major, std::int32_t minor, std::uint64_t seen, std::size_t width) {
  std::string bytes(12 + width, '\0');
  const std::int32_t version[3] = {major, minor, 0};
  std::memcpy(bytes.data(), version, sizeof(version));
  std::memcpy(bytes.data() + 12, &seen, width);
  return bytes;
}

void append(std::string& bytes, const std::vector<float>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class Draw {
 public:
  std::vector<float> values(int count) {
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& value : result) {
      value = normal_(generator_);
    }
    return result;
  }
  // From far below the epsilon of batch normalisation to far above it.
  std::vector<float> variances(int count) {
    std::vector<float> result = values(count);
    for (float& value : result) {
      value = std::pow(10.F, 3.F * value - 3.F);
    }
    return result;
  }

 private:
  std::mt19937 generator_{7};
  std::normal_distribution<float> normal_;
};

// What Darknet's own save_weights writes for small_network, layer after layer.
std::vector<LayerWeights> darknet_layers() {
  Draw draw;
  std::vector<LayerWeights> layers(6);
  layers[0] = {.weight = draw.values(6 * 2 * 9),
               .bias = draw.values(6),
               .scale = draw.values(6),
               .mean = draw.values(6),
               .variance = draw.variances(6)};
  layers[2] = {.weight = draw.values(2 * 6), .bias = draw.values(2)};
  const int inputs = static_cast<int>(small_network().shape(2).volume());
  layers[3] = {.weight = draw.values(5 * inputs),
               .bias = draw.values(5),
               .scale = draw.values(5),
               .mean = draw.values(5),
               .variance = draw.variances(5)};
  layers[4] = {.weight = draw.values(3 * 5), .bias = draw.values(3)};
  return layers;
}

std::string darknet_bytes(std::string bytes, const std::vector<LayerWeights>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool connected = i >= 3;
    append(bytes, layers[i].bias);
    append(bytes, connected ? layers[i].weight : std::vector<float>{});
    append(bytes, layers[i].scale);
    append(bytes, layers[i].mean);
    append(bytes, layers[i].variance);
    append(bytes, connected ? std::vector<float>{} : layers[i].weight);
  }
  return bytes;
}

// scale / divisor, the factor that normalisation multiplies with: as Darknet computes it, and as we
// do.
double darknet_factor(const LayerWeights& layer, std::size_t k) {
  return double{layer.scale[k]} / (std::sqrt(double{layer.variance[k]}) + double{1e-6F});
}
double our_factor(const LayerWeights& layer, std::size_t k, double epsilon = 1e-5) {
  return double{layer.scale[k]} / std::sqrt(double{layer.variance[k]} + epsilon);
}

// Variance and scale are rounded to single precision once each: half a last bit, 6e-8, for either.
constexpr double kRounding = 1.3e-7;

std::string error_of(const std::filesystem::path& path,
                     const Network& network,
                     bool allow_partial = false) {
  try {
    (void)read_darknet_weights(path, network, {}, allow_partial);
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).starts_with(path.string() + ": "));
    return error.what();
  }
  return "";
}

TEST_CASE("Darknet's order of parameters is read into the right places") {
  const TemporaryFolder folder;
  const auto path = folder / "small.weights";
  const std::vector<LayerWeights> layers = darknet_layers();
  put_bytes(path, darknet_bytes(header(0, 2, 1'234'567'890'123, 8), layers));
  const DarknetWeights weights = read_darknet_weights(path, small_network());
  CHECK(weights.seen == 1'234'567'890'123);
  CHECK(weights.layers_filled == 6);
  REQUIRE(weights.layers.size() == 6);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CAPTURE(i);
    CHECK(weights.layers[i].weight == layers[i].weight);
    CHECK(weights.layers[i].bias == layers[i].bias);
    CHECK(weights.layers[i].mean == layers[i].mean);
    CHECK(weights.layers[i].scale.size() == layers[i].scale.size());
    CHECK(weights.layers[i].variance.size() == layers[i].variance.size());
  }
}

TEST_CASE("normalisation multiplies with Darknet's factor after reading and after writing") {
  const TemporaryFolder folder;
  const auto path = folder / "small.weights";
  std::vector<LayerWeights> layers = darknet_layers();
  layers[0].variance = {0.F, 1e-12F, 9.99e-6F, 1e-5F, 1.F, 1e10F};
  put_bytes(path, darknet_bytes(header(0, 2, 0, 8), layers));
  for (const double epsilon : {1e-5, 1e-3, 1e-14}) {
    CAPTURE(epsilon);
    const DarknetWeights read = read_darknet_weights(path, small_network(), {.epsilon = epsilon});
    write_darknet_weights(folder / "again.weights", small_network(), read, {.epsilon = epsilon});
    const DarknetWeights again =
        read_darknet_weights(folder / "again.weights", small_network(), {.epsilon = epsilon});
    for (const std::size_t i : {0U, 3U}) {
      for (std::size_t k = 0; k < layers[i].variance.size(); ++k) {
        const double expected = darknet_factor(layers[i], k);
        CAPTURE(layers[i].variance[k]);
        CHECK(our_factor(read.layers[i], k, epsilon) ==
              doctest::Approx(expected).epsilon(kRounding));
        CHECK(our_factor(again.layers[i], k, epsilon) ==
              doctest::Approx(expected).epsilon(3 * kRounding));
      }
      CHECK(again.layers[i].weight == layers[i].weight);
      CHECK(again.layers[i].mean == layers[i].mean);
    }
  }
}

TEST_CASE("variances of ours that Darknet cannot express still multiply with the same factor") {
  const TemporaryFolder folder;
  const auto path = folder / "ours.weights";
  const Network network = small_network();
  DarknetWeights weights;
  weights.seen = 9;
  weights.layers = darknet_layers();
  weights.layers[0].variance = {0.F, 1e-13F, 1e-9F, 1e-5F, 1.F, 1e10F};
  for (const double epsilon : {1e-5, 1e-14}) {
    write_darknet_weights(path, network, weights, {.epsilon = epsilon});
    const DarknetWeights read = read_darknet_weights(path, network, {.epsilon = epsilon});
    CHECK(read.seen == 9);
    for (std::size_t k = 0; k < 6; ++k) {
      CAPTURE(k);
      CHECK(our_factor(read.layers[0], k, epsilon) ==
            doctest::Approx(our_factor(weights.layers[0], k, epsilon)).epsilon(3 * kRounding));
    }
  }
}

TEST_CASE("by Darknet's rule of batch normalisation a file is taken and written as it is") {
  const TemporaryFolder folder;
  std::vector<LayerWeights> layers = darknet_layers();
  layers[0].variance = {0.F, 1e-12F, 9.99e-6F, 1e-5F, 1.F, 1e10F};
  const std::string bytes = darknet_bytes(header(0, 2, 5, 8), layers);
  put_bytes(folder / "a.weights", bytes);
  const auto& rule = partitioner::kDarknetNorm;
  const DarknetWeights read = read_darknet_weights(folder / "a.weights", small_network(), rule);
  CHECK(read.layers[0].variance == layers[0].variance);
  CHECK(read.layers[0].scale == layers[0].scale);
  write_darknet_weights(folder / "b.weights", small_network(), read, rule);
  CHECK(bytes_of(folder / "b.weights") == bytes);
}

TEST_CASE("what was written without batch normalisation is Darknet's file byte for byte") {
  const TemporaryFolder folder;
  Network network;
  network.image = {.channels = 2, .rows = 3, .cols = 3};
  add_layer(network, partitioner::Convolution{.filters = 3, .size = 2}, {kImage});
  Draw draw;
  const std::vector<LayerWeights> layers = {
      {.weight = draw.values(3 * 2 * 4), .bias = draw.values(3)}};
  write_darknet_weights(folder / "a.weights", network, {.layers = layers, .seen = 77});
  CHECK(bytes_of(folder / "a.weights") == darknet_bytes(header(0, 2, 77, 8), layers));
}

TEST_CASE("old versions count images in 32 bits, and transpose connected weights above 1000") {
  const TemporaryFolder folder;
  const auto path = folder / "old.weights";
  struct Version {
    int major;
    int minor;
    std::size_t seen_bytes;
    bool transposed;
  };
  for (const Version version : {Version{0, 1, 4, false},
                                Version{0, 2, 8, false},
                                Version{1, 0, 8, false},
                                Version{1000, 1, 4, false},
                                Version{1001, 0, 4, true},
                                Version{0, 1001, 4, true}}) {
    CAPTURE(version.major);
    CAPTURE(version.minor);
    const std::vector<LayerWeights> layers = darknet_layers();
    put_bytes(path,
              darknet_bytes(header(version.major, version.minor, 4'000'000'000, version.seen_bytes),
                            layers));
    const DarknetWeights weights = read_darknet_weights(path, small_network());
    CHECK(weights.seen == 4'000'000'000);
    CHECK(weights.layers[0].weight == layers[0].weight);
    const std::vector<float>& stored =
        layers[4].weight;  // (K, C) = (3, 5), or (C, K) if transposed
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t c = 0; c < 5; ++c) {
        CHECK(weights.layers[4].weight[k * 5 + c] ==
              stored[version.transposed ? c * 3 + k : k * 5 + c]);
      }
    }
  }
}

TEST_CASE("weights of a transposed convolution lie by input channels in a file") {
  Network network;
  network.image = {.channels = 2, .rows = 3, .cols = 3};
  add_layer(network, partitioner::Deconvolution{.filters = 3, .size = {1, 2}}, {kImage});
  DarknetWeights weights;
  weights.layers = {{.weight = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, .bias = {7, 8, 9}}};
  std::string expected = header(0, 2, 0, 8);
  append(expected, weights.layers[0].bias);
  append(expected, {0, 1, 10, 11, 20, 21, 2, 3, 12, 13, 22, 23});
  const TemporaryFolder folder;
  const auto path = folder / "up.weights";
  write_darknet_weights(path, network, weights);
  CHECK(bytes_of(path) == expected);
  CHECK(read_darknet_weights(path, network).layers[0].weight == weights.layers[0].weight);
}

// Darknet's file has the filters of the first cell, then those of the second, and so on.
TEST_CASE("weights of a local layer lie by cells in a file, and by filters here") {
  constexpr int kFilters = 3;
  constexpr int kCells = 2 * 4;
  constexpr int kTerms = 2 * 2 * 2;
  Network network;
  network.image = {.channels = 2, .rows = 3, .cols = 5};
  add_layer(network, partitioner::Local{.filters = kFilters, .size = 2}, {kImage});
  Draw draw;
  DarknetWeights weights;
  weights.layers = {
      {.weight = draw.values(kFilters * kCells * kTerms), .bias = draw.values(kFilters * kCells)}};
  std::vector<float> by_cells;
  for (int cell = 0; cell < kCells; ++cell) {
    for (int k = 0; k < kFilters; ++k) {
      const auto from = weights.layers[0].weight.begin() + (k * kCells + cell) * kTerms;
      by_cells.insert(by_cells.end(), from, from + kTerms);
    }
  }
  std::string expected = header(0, 2, 0, 8);
  append(expected, weights.layers[0].bias);
  append(expected, by_cells);
  const TemporaryFolder folder;
  const auto path = folder / "local.weights";
  write_darknet_weights(path, network, weights);
  CHECK(bytes_of(path) == expected);
  const DarknetWeights again = read_darknet_weights(path, network);
  CHECK(again.layers[0].weight == weights.layers[0].weight);
  CHECK(again.layers[0].bias == weights.layers[0].bias);
  std::vector<float> some(13);
  const engine::DarknetWeightsReader reader(path, network);
  reader.read_weight(0, 21, some);
  CHECK(std::equal(some.begin(), some.end(), weights.layers[0].weight.begin() + 21));
}

TEST_CASE("a weight in chunks of any size is the weight at once") {
  const TemporaryFolder folder;
  const auto path = folder / "pieces.weights";
  const Network network = small_network();
  for (const int major : {0, 1001}) {  // the latter (C, K) where connected
    put_bytes(path, darknet_bytes(header(major, 2, 0, major == 0 ? 8 : 4), darknet_layers()));
    const DarknetWeights whole = read_darknet_weights(path, network);
    const DarknetWeightsReader reader(path, network);
    for (int layer = 0; layer < network.size(); ++layer) {
      const std::vector<float>& expected = whole.layers[static_cast<std::size_t>(layer)].weight;
      for (const std::size_t chunk : {1, 4, 7, 1000}) {
        std::vector<float> read(expected.size());
        for (std::size_t begin = 0; begin < read.size(); begin += chunk) {
          reader.read_weight(layer,
                             static_cast<Index>(begin),
                             std::span(read).subspan(begin, std::min(chunk, read.size() - begin)));
        }
        CHECK(read == expected);
      }
    }
  }
}

TEST_CASE("a file cut at any byte is refused with the layer where it ends") {
  const TemporaryFolder folder;
  const auto path = folder / "cut.weights";
  const std::string bytes = darknet_bytes(header(0, 2, 0, 8), darknet_layers());
  for (std::size_t length = 0; length < bytes.size(); length += length < 40 ? 1 : 37) {
    CAPTURE(length);
    put_bytes(path, bytes.substr(0, length));
    CHECK_FALSE(error_of(path, small_network()).empty());
  }
  put_bytes(path, bytes.substr(0, bytes.size() - 4));
  CHECK(has(error_of(path, small_network()),
            fmt::format("ends in layer 4 (connected), at byte {}: the layer's parameters are bytes "
                        "{} to {};",
                        bytes.size() - 4,
                        bytes.size() - 72,
                        bytes.size())));
  put_bytes(path, bytes + "more");
  for (const bool allow_partial : {false, true}) {
    CHECK(has(error_of(path, small_network(), allow_partial),
              fmt::format("continues after the last layer: the parameters of layer 4 (connected) "
                          "end at byte {}, the file at byte {};",
                          bytes.size(),
                          bytes.size() + 4)));
  }
}

TEST_CASE("a partial file fills the layers it has and no others") {
  const TemporaryFolder folder;
  const auto path = folder / "partial.weights";
  const std::vector<LayerWeights> layers = darknet_layers();
  const std::string bytes = darknet_bytes(header(0, 2, 0, 8), layers);
  put_bytes(path, bytes.substr(0, bytes.size() - 4 * kLastFloats));
  CHECK(has(error_of(path, small_network()), "ends in layer 4 (connected)"));
  const DarknetWeights weights = read_darknet_weights(path, small_network(), {}, true);
  CHECK(weights.layers_filled == 4);
  CHECK(weights.layers.size() == 6);
  CHECK(weights.layers[3].weight == layers[3].weight);
  CHECK(weights.layers[4] == LayerWeights{});

  put_bytes(path, bytes.substr(0, bytes.size() - 4));
  CHECK(has(error_of(path, small_network(), true), "ends in layer 4 (connected)"));
  put_bytes(path, header(0, 2, 5, 8));
  CHECK(read_darknet_weights(path, small_network(), {}, true).layers_filled == 0);
}

TEST_CASE("the first layers are written as the bytes that a whole file begins with") {
  const TemporaryFolder folder;
  DarknetWeights weights;
  weights.layers = darknet_layers();
  write_darknet_weights(folder / "whole.weights", small_network(), weights);
  const std::string whole = bytes_of(folder / "whole.weights");
  for (std::size_t layers = 0; layers <= 6; ++layers) {
    CAPTURE(layers);
    weights.layers.resize(layers);
    write_darknet_weights(folder / "partial", small_network(), weights);
    const std::string partial = bytes_of(folder / "partial");
    CHECK(partial == whole.substr(0, partial.size()));
    // Layers 1 and 5 have no parameters: a file cannot tell whether it has them.
    const int filled =
        DarknetWeightsReader(folder / "partial", small_network(), {}, true).layers_filled();
    CHECK(filled == (layers == 1 ? 2 : layers == 5 ? 6 : static_cast<int>(layers)));
    weights.layers = darknet_layers();
  }
}

TEST_CASE("a last layer with another number of outputs counts as one that the file lacks") {
  const TemporaryFolder folder;
  const auto path = folder / "other.weights";
  const std::string bytes = darknet_bytes(header(0, 2, 0, 8), darknet_layers());
  const std::string others = bytes.substr(0, bytes.size() - 4 * kLastFloats);
  const std::size_t one_output = 4 * (1 + 5);
  for (const std::size_t outputs : {1U, 2U, 4U, 1000U}) {
    CAPTURE(outputs);
    put_bytes(path, others + std::string(outputs * one_output, '\0'));
    const DarknetWeightsReader file(path, small_network(), {}, true);
    CHECK(file.layers_filled() == 4);
    CHECK(file.other_outputs() == static_cast<Index>(outputs));
    CHECK_FALSE(error_of(path, small_network()).empty());
  }
  put_bytes(path, bytes);
  CHECK(DarknetWeightsReader(path, small_network(), {}, true).other_outputs() == 0);
}

TEST_CASE("numbers that are not finite are refused with layer and place") {
  const TemporaryFolder folder;
  const auto path = folder / "other.weights";
  std::vector<LayerWeights> layers = darknet_layers();
  layers[2].weight[3] = std::numeric_limits<float>::quiet_NaN();
  put_bytes(path, darknet_bytes(header(0, 2, 0, 8), layers));
  CHECK(has(error_of(path, small_network()),
            "layer 2 (convolutional): its weight holds NaN at element 3"));
  layers = darknet_layers();
  layers[3].variance[1] = std::numeric_limits<float>::infinity();
  put_bytes(path, darknet_bytes(header(0, 2, 0, 8), layers));
  CHECK(has(error_of(path, small_network()),
            "layer 3 (connected): its running variance holds infinity at element 1"));
}

TEST_CASE("variances that no network has are refused with layer and channel") {
  const TemporaryFolder folder;
  const auto path = folder / "other.weights";
  for (const float bad : {-1e-3F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<LayerWeights> layers = darknet_layers();
    layers[3].variance[2] = bad;
    put_bytes(path, darknet_bytes(header(0, 2, 0, 8), layers));
    CHECK(has(error_of(path, small_network()),
              "layer 3 (connected): the running variance of channel 2 is"));
  }
}

TEST_CASE("a network larger than any file is refused before memory is taken for it") {
  const TemporaryFolder folder;
  const auto path = folder / "small.weights";
  put_bytes(path, header(0, 2, 0, 8) + "abcd");
  Network network;
  network.image = {.channels = 1 << 10, .rows = 1 << 10, .cols = 1 << 10};
  add_layer(network, partitioner::Connected{.outputs = 1 << 9}, {kImage});
  CHECK(has(error_of(path, network), "ends in layer 0 (connected)"));
}

TEST_CASE("weights of another network fail an assertion and leave no file") {
  const TemporaryFolder folder;
  DarknetWeights weights;
  weights.layers = darknet_layers();
  weights.layers[2].bias.pop_back();
  CHECK_THROWS_AS(write_darknet_weights(folder / "a.weights", small_network(), weights),
                  std::logic_error);
  CHECK(folder.entries() == 0);
}

}  // namespace
