#ifdef TESSERA_HAS_ONNX
#include "tests/fuzz/harness.h"

#include "engine/onnx/export.h"
#include "engine/onnx/messages.h"
#include "partitioner/base/errors.h"
#include "partitioner/cfg/model_file.h"
#include "partitioner/network/losses.h"

namespace tessera::tests {

namespace {

constexpr Index kMostNumbers = 100'000;  // of a layer: more take memory alone

std::vector<float> numbers(const partitioner::ParameterShape& shape) {
  return std::vector<float>(static_cast<std::size_t>(shape.channels * shape.row), 0.5F);
}

engine::LayerWeights weights(const partitioner::Network& network, int layer) {
  const partitioner::LayerParameters shapes = layer_parameters(network, layer);
  return {numbers(shapes.weight),
          numbers(shapes.bias),
          numbers(shapes.scale),
          numbers(shapes.mean),
          numbers(shapes.variance)};
}

bool is_small(const partitioner::Network& network) {
  if (network.size() > 64 ||
      (is_detector(network) && engine::box_layout(network).boxes > kMostNumbers)) {
    return false;
  }
  for (int layer = 0; layer < network.size(); ++layer) {
    const partitioner::ParameterShape shape = layer_parameters(network, layer).weight;
    if (shape.channels * shape.row > kMostNumbers) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool fuzz_export(Bytes bytes) {
  if (bytes.empty()) {
    return false;
  }
  const std::uint8_t choices = bytes[0];
  try {
    const partitioner::ModelFile model =
        partitioner::parse_model(text_of(bytes.subspan(1)), "fuzz.cfg");
    engine::ExportOptions options{.model = "fuzz.cfg",
                                  .norm = model.training.norm,
                                  .raw = (choices & 1U) != 0,
                                  .logits = (choices & 2U) != 0,
                                  .keep_batch_norm = (choices & 4U) != 0};
    if ((choices & 8U) != 0) {
      options.batch.reset();
    }
    expect_exportable(model.network, options);
    if (!is_small(model.network)) {
      return false;
    }
    const auto exported = export_model(
        model.network, [&](int layer) { return weights(model.network, layer); }, options);
    law(!exported.outputs().empty(), "there is an output");
    onnx::ModelProto again;
    law(again.ParseFromString(exported.message().SerializeAsString()), "it can be read");
    law(again.graph().node_size() == exported.message().graph().node_size(), "all nodes are there");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace tessera::tests
#endif
