// The model files of YOLOX, convolution by convolution, against the original networks:
// tests/golden/yolox_shapes.json.

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <doctest/doctest.h>

#include "partitioner/cfg/model_file.h"
#include "partitioner/network/losses.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::partitioner;  // NOLINT(google-build-using-namespace)

TEST_CASE(
    "the model files of YOLOX have the convolutions of the original networks, in their order") {
  const auto root = std::filesystem::path(TESSERA_SOURCE_DIR);
  std::ifstream file(root / "tests" / "golden" / "yolox_shapes.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const std::string name : {"nano", "tiny", "s"}) {
    CAPTURE(name);
    const Network network = read_model(root / "models" / ("yolox-" + name + ".cfg")).network;
    const auto& original = golden["yolox_" + name];
    std::size_t next = 0;
    Index parameters = 0;
    for (int layer = 0; layer < network.size(); ++layer) {
      const LayerSpec& spec = network.layer(layer);
      const auto* convolution = std::get_if<Convolution>(&spec.operation);
      if (convolution == nullptr) {
        continue;
      }
      CAPTURE(next);
      REQUIRE(next < original["convs"].size());
      const auto& expected = original["convs"][next++];
      CHECK(network.shape(spec.inputs[0]).channels == expected["in"].get<Index>());
      CHECK(convolution->size.rows == expected["k"].get<Index>());
      CHECK(convolution->stride.rows == expected["stride"].get<Index>());
      CHECK(convolution->padding.rows == expected["pad"].get<Index>());
      CHECK(convolution->groups == expected["groups"].get<Index>());
      CHECK(convolution->batch_normalize == expected["bn"].get<bool>());
      const MapShape shape{expected["shape"][0], expected["shape"][1], expected["shape"][2]};
      CHECK(spec.output == shape);
      const LayerParameters learnt = layer_parameters(network, layer);
      parameters += learnt.weight.channels * learnt.weight.row + learnt.bias.channels +
                    (convolution->batch_normalize ? learnt.bias.channels : 0);
    }
    CHECK(next == original["convs"].size());
    CHECK(parameters == original["parameters"]["80_classes"].get<Index>());
    Index cells = 0;
    for (const int head : assigned_heads(network)) {
      cells += network.shape(head).rows * network.shape(head).cols;
    }
    CHECK(cells == original["cells"].get<Index>());
  }
}
