// Random networks to ONNX files and back, by the graph alone.

#include <string>

#include "tests/support/random_tensors.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/safetensors.h"
#include "engine/onnx/export.h"
#include "engine/onnx/import.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/losses.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::BatchNormMode;
using tests::NamedTensors;

// As a file has them.
void round_to_single(NamedTensors& tensors) {
  for (auto& [name, tensor] : tensors) {
    for (double& value : tensor.values) {
      value = static_cast<float>(value);
    }
  }
}

engine::LayerWeights weights_of(const NamedTensors& tensors, int layer) {
  const auto values = [&](const char* kind) {
    const auto found = tensors.find("layers." + std::to_string(layer) + "." + kind);
    return found == tensors.end()
               ? std::vector<float>()
               : std::vector<float>(found->second.values.begin(), found->second.values.end());
  };
  return {values("weight"),
          values("bias"),
          values("bn.scale"),
          values("bn.mean"),
          values("bn.variance")};
}

NamedTensors read_back(const std::filesystem::path& path, const NamedTensors& asked) {
  NamedTensors tensors{{"input", asked.at("input")},
                       {"output_gradient", asked.at("output_gradient")}};
  const engine::SafetensorsReader file(path);
  for (const engine::StoredTensor& tensor : file.tensors()) {
    const std::vector<float> values = file.read_all<float>(tensor.name);
    tensors[tensor.name] = {tensor.shape, {values.begin(), values.end()}};
  }
  return tensors;
}

TEST_CASE("what a network's file becomes computes the same, or is refused by the node") {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    tests::Draw draw(seed);
    const partitioner::Network network =
        tests::random_network(draw, {.of_detectors = seed % 2 == 0, .of_graphs = seed % 3 == 0});
    NamedTensors in = tests::random_tensors(network, 1, seed);
    round_to_single(in);
    if (output_layer(network) != network.size() - 1) {
      continue;  // the file has the outputs of a loss before the end
    }
    const engine::ExportOptions options{.model = "a network", .keep_batch_norm = draw.chance(0.5)};
    const tests::TemporaryFolder folder;
    try {
      expect_exportable(network, options);
      export_model(
          network, [&](int layer) { return weights_of(in, layer); }, options)
          .write(folder / "m.onnx");
      (void)engine::import_onnx({.from = folder / "m.onnx", .cfg = folder / "m.cfg"});
    } catch (const InputError& error) {
      INFO(std::string(error.what()));
      CHECK((tests::has(error.what(), "node '") || tests::has(error.what(), "a network")));
      continue;
    }
    const auto model = partitioner::read_model(folder / "m.cfg");
    const NamedTensors expected = tests::on_one_tile<double>(network, in, BatchNormMode::Frozen);
    const NamedTensors found = tests::on_one_tile<double>(model.network,
                                                          read_back(folder / "m.safetensors", in),
                                                          BatchNormMode::Frozen,
                                                          model.training.norm);
    for (const char* name : {"output", "input_gradient"}) {
      INFO(name);
      CHECK(tests::largest_difference(found.at(name), expected.at(name)) <=
            1e-6 * tests::largest_magnitude(expected.at(name)));
    }
    ++compared;
  }
  CHECK(compared >= 25);
}

std::string model_file(const std::string& filters) {
  return "# mine\n[net]\nheight=8\nwidth=6\nchannels=2\n[convolutional]\nfilters=" + filters +
         "\nsize=3\npad=1\nactivation=gelu\n[convolutional]\nfilters=2\nactivation=linear\n";
}

TEST_CASE("the model file in a file comes back, unless the graph has other weights by now") {
  const partitioner::Network network = partitioner::parse_model(model_file("4"), "m.cfg").network;
  const NamedTensors in = tests::random_tensors(network, 1, 3);
  const tests::TemporaryFolder folder;
  const auto import = [&](const std::string& text) {
    const engine::ExportOptions options{.model = "a network", .model_text = text};
    export_model(
        network, [&](int layer) { return weights_of(in, layer); }, options)
        .write(folder / "m.onnx");
    (void)engine::import_onnx({.from = folder / "m.onnx", .cfg = folder / "m.cfg"});
  };
  import(model_file("4"));
  CHECK(partitioner::read_model(folder / "m.cfg").text == model_file("4"));
  const NamedTensors back = read_back(folder / "m.safetensors", in);
  CHECK(tests::largest_difference(back.at("layers.1.weight"), in.at("layers.1.weight")) < 1e-6);
  for (const char* const text :
       {"5", "no number"}) {  // the graph alone has a gelu that no section says
    CHECK_THROWS_AS(import(model_file(text)), InputError);
  }
}

}  // namespace
