// A step of training of detectors, against Debian's Darknet: tests/golden/detectors.

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/random_tensors.h"
#include <doctest/doctest.h>

#include "engine/files/safetensors.h"
#include "partitioner/cfg/model_file.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::NamedTensor;
using engine::NamedTensors;

// Darknet adds up in single precision, through up to 23 normalised layers: what rounds in one is
// divided by the deviations of the next ones.
constexpr double kStepBound = 2e-5;
constexpr double kNormalizedBound = 1e-4;
constexpr std::string_view kExpectedOf = "expected.";

template <class T>
void compare_step(const std::filesystem::path& cfg) {
  const partitioner::ModelFile model = partitioner::read_model(cfg);
  std::filesystem::path tensors = cfg;
  const engine::SafetensorsReader file(tensors.replace_extension("safetensors"));
  NamedTensors in;
  NamedTensors expected;
  for (const engine::StoredTensor& tensor : file.tensors()) {
    NamedTensor values{tensor.shape, file.read_all<double>(tensor.name)};
    if (tensor.name.starts_with(kExpectedOf)) {
      expected[tensor.name.substr(kExpectedOf.size())] = std::move(values);
    } else {
      in[tensor.name] = std::move(values);
    }
  }
  const NamedTensors found =
      tests::on_one_tile<T>(model.network, in, engine::BatchNormMode::Sync, model.training.norm);
  const bool is_normalized =
      std::any_of(model.network.layers.begin(), model.network.layers.end(), [](const auto& layer) {
        return normalizes(layer.operation);
      });
  for (const auto& entry : expected) {
    CAPTURE(entry.first);
    REQUIRE(found.count(entry.first) == 1);
    CHECK(tests::largest_difference(found.at(entry.first), entry.second) <=
          (is_normalized ? kNormalizedBound : kStepBound) * tests::largest_magnitude(entry.second));
  }
}

}  // namespace

TEST_CASE("outputs, deltas, cost and gradients of detectors are those of Debian's Darknet") {
  const auto folder = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests" / "golden" / "detectors";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".cfg") {
      CAPTURE(entry.path().filename().string());
      compare_step<double>(entry.path());
      compare_step<float>(entry.path());
      ++count;
    }
  }
  CHECK(count == 9);
}
