// The engine against other people's: vector-Jacobian products against PyTorch's, inference against
// Darknet's. The files are in tests/golden, where README.md says what they hold and how they were
// made.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/darknet_weights.h"
#include "tests/support/random_tensors.h"
#include <doctest/doctest.h>

#include "engine/files/darknet_weights.h"
#include "engine/files/safetensors.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {
namespace {

// Differences are relative to the largest element of the expected tensor. Where all of it is 0, as
// below the normalisation of a single cell, they are absolute.
struct Bounds {
  double relative = 0;
  double of_zero = 0;
};

// Two orders of summation in double precision; 1e-9 leaves room for the 1 / deviation of small
// batches.
constexpr Bounds kDouble = {.relative = 1e-9, .of_zero = 1e-12};

// PyTorch's own single precision is up to 4.1e-6 away from its double on these files (the deepest
// network with batch normalisation; 6e-7 without), and any other order of summation may be several
// times that. Nothing larger can come from flipped signs or argmax: every value keeps at least 5e-5
// of its map's largest away from a kink or a tie.
constexpr Bounds kSingle = {.relative = 2e-5, .of_zero = 1e-6};

// Both sides in single precision, through deviations down to 1e-6 in the weights files.
constexpr double kDarknetBound = 1e-4;

constexpr std::string_view kExpected = "expected.";
constexpr std::string_view kFrozen = "frozen_";
constexpr std::string_view kDarknet = "darknet_";

std::filesystem::path golden_folder() {
  return std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "golden";
}

std::vector<std::string> case_names(bool of_darknet) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() == ".safetensors" && stem.starts_with(kDarknet) == of_darknet) {
      names.push_back(stem);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct GoldenCase {
  partitioner::ModelFile model;
  NamedTensors in;
  NamedTensors expected;
};

GoldenCase read_case(const std::string& name) {
  GoldenCase result;
  result.model = partitioner::read_model(golden_folder() / (name + ".cfg"));
  const SafetensorsReader file(golden_folder() / (name + ".safetensors"));
  for (const StoredTensor& tensor : file.tensors()) {
    NamedTensor values{.shape = tensor.shape, .values = file.read_all<double>(tensor.name)};
    if (tensor.name.starts_with(kExpected)) {
      result.expected[tensor.name.substr(kExpected.size())] = std::move(values);
    } else {
      result.in[tensor.name] = std::move(values);
    }
  }
  return result;
}

void check_tensors(const NamedTensors& found, const NamedTensors& expected, const Bounds& bounds) {
  CHECK_MESSAGE(found.size() == expected.size(), "tensors that nobody expects, or too few");
  for (const auto& entry : expected) {
    const NamedTensor& tensor = entry.second;
    INFO("tensor ", entry.first);
    const auto place = found.find(entry.first);
    if (place == found.end()) {
      FAIL_CHECK("is missing");
      continue;
    }
    const double magnitude = tests::largest_magnitude(tensor);
    const double difference = tests::largest_difference(place->second, tensor);
    CHECK(difference <= (magnitude == 0 ? bounds.of_zero : bounds.relative * magnitude));
  }
}

template <class T>
void check_every_case(const Bounds& bounds) {
  const std::vector<std::string> names = case_names(false);
  REQUIRE(names.size() > 80);
  for (const std::string& name : names) {
    INFO("case ", name);
    const GoldenCase golden = read_case(name);
    const auto mode = name.starts_with(kFrozen) ? BatchNormMode::Frozen : BatchNormMode::Sync;
    check_tensors(
        tests::on_one_tile<T>(golden.model.network, golden.in, mode), golden.expected, bounds);
  }
}

TEST_CASE("outputs, gradients and statistics are PyTorch's in double precision") {
  check_every_case<double>(kDouble);
}

TEST_CASE("outputs, gradients and statistics are PyTorch's in single precision, within rounding") {
  check_every_case<float>(kSingle);
}

void add_parameter(NamedTensors& in,
                   const std::string& name,
                   const std::vector<Index>& shape,
                   const std::vector<float>& values) {
  if (!values.empty()) {
    in[name] = {.shape = shape, .values = std::vector<double>(values.begin(), values.end())};
  }
}

// (K, C / groups, FH, FW), or (K, C) of a dense layer.
std::vector<Index> weight_shape(const partitioner::Network& network, int layer) {
  const partitioner::ParameterShape weight = partitioner::layer_parameters(network, layer).weight;
  const auto& operation = network.layer(layer).operation;
  if (const auto* convolution = std::get_if<partitioner::Convolution>(&operation)) {
    const partitioner::PerAxis& size = convolution->size;
    return {weight.channels, weight.row / size.product(), size.rows, size.cols};
  }
  return {weight.channels, weight.row};
}

NamedTensors darknet_parameters(const partitioner::Network& network,
                                const std::filesystem::path& path) {
  NamedTensors in;
  const DarknetWeights weights = tests::read_darknet_weights(path, network);
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerWeights& of_layer = weights.layers[static_cast<std::size_t>(layer)];
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const std::vector<Index> per_channel = {static_cast<Index>(of_layer.bias.size())};
    add_parameter(in, prefix + "weight", weight_shape(network, layer), of_layer.weight);
    add_parameter(in, prefix + "bias", per_channel, of_layer.bias);
    add_parameter(in, prefix + "bn.scale", per_channel, of_layer.scale);
    add_parameter(in, prefix + "bn.mean", per_channel, of_layer.mean);
    add_parameter(in, prefix + "bn.variance", per_channel, of_layer.variance);
  }
  return in;
}

TEST_CASE("a .weights file gives the outputs that Darknet computes from it") {
  const std::vector<std::string> names = case_names(true);
  REQUIRE(names.size() == 2);
  for (const std::string& name : names) {
    INFO("case ", name);
    const GoldenCase golden = read_case(name);
    const NamedTensor& expected = golden.expected.at("output");
    NamedTensors in =
        darknet_parameters(golden.model.network, golden_folder() / (name + ".weights"));
    in["input"] = golden.in.at("input");
    in["output_gradient"] = {.shape = expected.shape,
                             .values = std::vector<double>(expected.values.size())};
    const auto found = tests::on_one_tile<float>(golden.model.network, in, BatchNormMode::Frozen);
    REQUIRE(found.contains("output"));
    CHECK(tests::largest_difference(found.at("output"), expected) <=
          kDarknetBound * tests::largest_magnitude(expected));
  }
}

}  // namespace
}  // namespace tessera::engine
