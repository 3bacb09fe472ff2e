#include "engine/onnx/export.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "engine/onnx/messages.h"
#include "partitioner/base/errors.h"
#include "partitioner/network/layer_traits.h"

using namespace tessera;          // NOLINT(google-build-using-namespace): a test of this project
using namespace tessera::engine;  // NOLINT(google-build-using-namespace)
using partitioner::kImage;
using partitioner::Network;

namespace {

// A number of each kind for all weights.
LayerWeights made_up(const Network& network, int layer) {
  const partitioner::LayerParameters shapes = layer_parameters(network, layer);
  const auto filled = [](const partitioner::ParameterShape& shape, float value) {
    return std::vector<float>(static_cast<std::size_t>(shape.channels * shape.row), value);
  };
  return {filled(shapes.weight, 2),
          filled(shapes.bias, 3),
          filled(shapes.scale, 5),
          filled(shapes.mean, 7),
          filled(shapes.variance, 4)};
}

onnx::ModelProto message_of(const Network& network, const ExportOptions& options) {
  expect_exportable(network, options);
  return export_model(
             network, [&](int layer) { return made_up(network, layer); }, options)
      .message();
}

std::string operations(const onnx::ModelProto& message) {
  std::string found;
  for (const onnx::NodeProto& node : message.graph().node()) {
    found += node.op_type() + " ";
  }
  return found;
}

std::vector<float> constant(const onnx::ModelProto& message, const std::string& name) {
  for (const onnx::TensorProto& tensor : message.graph().initializer()) {
    if (tensor.name() == name) {
      const std::string& bytes = tensor.raw_data();
      std::vector<float> values(bytes.size() / sizeof(float));
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
      return values;
    }
  }
  return {};
}

std::string refusal(const Network& network, const ExportOptions& options) {
  try {
    expect_exportable(network, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Network of_input(const partitioner::MapShape& image) {
  Network network;
  network.image = image;
  return network;
}

Network normalized_network() {
  Network network = of_input({2, 5, 5});
  add_layer(network,
            partitioner::Convolution{.filters = 3,
                                     .size = 3,
                                     .padding = 1,
                                     .batch_normalize = true,
                                     .activation = partitioner::Activation::Relu6},
            {kImage});
  add_layer(network, partitioner::Connected{.outputs = 4}, {0});
  add_layer(network, partitioner::Softmax{}, {1});
  return network;
}

Network detector(Index classes = 2) {
  Network network = of_input({3, 64, 64});
  add_layer(network, partitioner::Convolution{.filters = 2 * (5 + classes), .stride = 8}, {kImage});
  add_layer(network,
            partitioner::YoloHead{
                .classes = classes, .anchors = {{8, 8}, {9, 9}, {10, 10}}, .mask = {0, 2}},
            {0});
  return network;
}

// Every value that a node reads is there before it, under one name.
void check_order(const onnx::ModelProto& message) {
  std::set<std::string> known{""};
  for (const auto& input : message.graph().input()) {
    CHECK(known.insert(input.name()).second);
  }
  for (const auto& tensor : message.graph().initializer()) {
    CHECK(known.insert(tensor.name()).second);
  }
  for (const onnx::NodeProto& node : message.graph().node()) {
    for (const std::string& input : node.input()) {
      CAPTURE(input);
      CHECK(known.count(input) == 1);
    }
    CHECK(known.insert(node.output(0)).second);
  }
  for (const auto& output : message.graph().output()) {
    CHECK(known.count(output.name()) == 1);
    CHECK(output.type().tensor_type().shape().dim_size() > 0);
  }
}

TEST_CASE("an exported file has folded batch normalisation, or the statistics as they are") {
  const Network network = normalized_network();
  const partitioner::NormRule norm{.epsilon = 0.0625};
  const auto folded = message_of(network, {.norm = norm});
  check_order(folded);
  CHECK(operations(folded) == "Conv Relu Sub Relu Sub Flatten Gemm Sigmoid Softmax ");
  const double factor = 5 / std::sqrt(4 + norm.epsilon);
  CHECK(constant(folded, "layers.0.weight").front() == doctest::Approx(2 * factor));
  CHECK(constant(folded, "layers.0.bias").front() == doctest::Approx(3 - 7 * factor));

  const auto kept = message_of(network, {.norm = norm, .keep_batch_norm = true});
  check_order(kept);
  CHECK(kept.graph().node(1).op_type() == "BatchNormalization");
  CHECK(kept.graph().node(1).attribute(0).f() == 0.0625F);
  CHECK(kept.graph().node(0).input_size() == 2);
  CHECK(constant(kept, "layers.0.weight").front() == 2);
  CHECK(constant(kept, "layers.0.bn.mean").front() == 7);
  CHECK(constant(kept, "layers.0.bn.variance").front() == 4);

  const auto darknet =
      message_of(network, {.norm = partitioner::kDarknetNorm, .keep_batch_norm = true});
  CHECK(darknet.graph().node(1).attribute(0).f() == 0);
  CHECK(constant(darknet, "layers.0.bn.variance").front() == doctest::Approx(4.000004));
}

TEST_CASE("an exported file says its version, its input and what its outputs are called") {
  const auto message = message_of(detector(), {.class_names = {"it's", "b\\c"}});
  check_order(message);
  CHECK(message.ir_version() == 8);
  CHECK(message.opset_import(0).version() == 13);
  CHECK(message.graph().input(0).name() == "images");
  std::map<std::string, std::string> described;
  for (const auto& entry : message.metadata_props()) {
    described[entry.key()] = entry.value();
  }
  CHECK(described == std::map<std::string, std::string>{{"names", R"({0: 'it\'s', 1: 'b\\c'})"},
                                                        {"imgsz", "[64, 64]"},
                                                        {"stride", "8"}});
  REQUIRE(message.graph().output_size() == 1);
  const auto& shape = message.graph().output(0).type().tensor_type().shape();
  CHECK(message.graph().output(0).name() == "output0");
  CHECK(shape.dim(0).dim_value() == 1);
  CHECK(shape.dim(1).dim_value() == 6);
  CHECK(shape.dim(2).dim_value() == 2 * 8 * 8);
  CHECK(box_layout(detector()).values == 6);
  CHECK(box_layout(detector()).boxes == 128);
}

TEST_CASE("an exported file for any number of images names that dimension") {
  for (const bool raw : {false, true}) {
    const auto message = message_of(detector(), {.batch = std::nullopt, .raw = raw});
    check_order(message);
    CHECK(message.graph().input(0).type().tensor_type().shape().dim(0).dim_param() == "batch");
    CHECK(message.graph().output(0).type().tensor_type().shape().dim(0).dim_param() == "batch");
  }
}

TEST_CASE("values that are put out have their names, also twice and when nothing makes them") {
  Network network = detector();
  add_layer(network, network.layer(1).operation, {0});
  const auto twice = message_of(network, {.raw = true});
  check_order(twice);
  REQUIRE(twice.graph().output_size() == 2);
  CHECK(twice.graph().output(1).name() == "output1");
  CHECK(twice.graph().node(2).op_type() == "Identity");

  Network nothing = of_input({3, 1, 1});
  add_layer(nothing, partitioner::Softmax{}, {kImage});
  const auto logits = message_of(nothing, {.logits = true});
  check_order(logits);
  CHECK(logits.graph().output(0).name() == "output0");
  CHECK(message_of(nothing, {.mean = {0, 0, 0}, .stddev = {1, 1, 1}}).graph().node_size() == 2);
  CHECK(message_of(nothing, {.mean = {0, 1, 0}, .stddev = {1, 1, 1}}).graph().node_size() == 3);
}

TEST_CASE("what ONNX cannot say is refused by the layer's name, if anything is computed from it") {
  Network network = of_input({2, 6, 6});
  add_layer(network, partitioner::Local{.filters = 2}, {kImage}, 12);
  CHECK(contains(refusal(network, {.model = "m.cfg"}), "m.cfg:12: layer 0 [local] has weights"));
  add_layer(network, partitioner::Softmax{}, {kImage});
  CHECK(refusal(network, {}) == "none");

  Network joining = of_input({2, 6, 6});
  add_layer(joining, partitioner::MaxPool{.size = 2, .stride = 2}, {kImage});
  add_layer(joining, partitioner::Shortcut{}, {kImage, 0}, 9);
  CHECK(contains(refusal(joining, {.model = "m.cfg"}), "m.cfg:9: layer 1 [shortcut]"));
}

TEST_CASE("options that do not fit the end of a network are refused, and heads of other classes") {
  CHECK(contains(refusal(normalized_network(), {.raw = true}), "--raw is for detectors"));
  CHECK(contains(refusal(detector(), {.logits = true}), "ends in [yolo]"));
  Network network = detector();
  add_layer(network, partitioner::Convolution{.filters = 8, .stride = 4}, {kImage});
  add_layer(network, partitioner::YoloHead{.classes = 3, .anchors = {{8, 8}}, .mask = {0}}, {2});
  CHECK(contains(refusal(network, {}), "layer 3 [yolo] has 3 classes and the first head has 2"));
  CHECK(refusal(network, {.raw = true}) == "none");
}

TEST_CASE("more weights than a file holds are refused before any is asked for") {
  Network network = of_input({3, 100, 100});
  add_layer(network, partitioner::Connected{.outputs = 15000}, {kImage});
  add_layer(network, partitioner::Connected{.outputs = 2000}, {0});
  CHECK(refusal(network, {}) == "none");
  add_layer(network, partitioner::Connected{.outputs = 100000}, {1});
  CHECK(contains(refusal(network, {.model = "m.cfg"}), "an ONNX file holds at most 2 GB"));
}

}  // namespace
