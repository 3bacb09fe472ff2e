#include "engine/onnx/import.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/onnx/small_graph.h"
#include "tests/support/refusals.h"
#include "tests/support/temporary_folder.h"
#include <doctest/doctest.h>

#include "engine/files/safetensors.h"

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::import_onnx;
using engine::import_onnx_weights;
using tests::has;
using tests::input_error_of;
using tests::SmallGraph;
using tests::TemporaryFolder;

struct Imported {
  std::string sections;  // of the model file, without [net]
  std::string net;
  std::vector<std::string> notices;
  TemporaryFolder folder = {};

  [[nodiscard]] std::vector<float> tensor(const std::string& name) const {
    return engine::SafetensorsReader(folder / "m.safetensors").read_all<float>(name);
  }
};

void import_to(Imported& imported,
               const SmallGraph& graph,
               const partitioner::InputSize& size = {}) {
  graph.write(imported.folder / "m.onnx");
  imported.notices = import_onnx(
      {.from = imported.folder / "m.onnx", .cfg = imported.folder / "m.cfg", .size = size});
  std::ifstream file(imported.folder / "m.cfg");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t end = text.find("\n\n");
  imported.net = text.substr(0, end);
  imported.sections = text.substr(end + 2);
}

// Nothing may be left where it is refused.
std::string refusal(const SmallGraph& graph) {
  const TemporaryFolder folder;
  graph.write(folder / "m.onnx");
  std::string message = input_error_of(
      [&] { (void)import_onnx({.from = folder / "m.onnx", .cfg = folder / "m.cfg"}); });
  CHECK(folder.entries() == 1);
  CHECK(has(message, "m.onnx: "));
  CHECK(!has(message, "\n"));
  return message;
}

using Build = std::function<void(SmallGraph&)>;

// What the graph of these nodes, from "x" to "y", becomes.
void check_sections(const std::string& expected,
                    const Build& build,
                    const std::vector<Index>& shape = {1, 4, 8, 6},
                    Index opset = 13) {
  SmallGraph graph(shape, opset);
  build(graph);
  graph.output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections == expected);
}

void check_refused(const std::string& part,
                   const Build& build,
                   const std::vector<Index>& shape = {1, 4, 8, 6}) {
  SmallGraph graph(shape);
  build(graph);
  graph.output("y");
  const std::string message = refusal(graph);
  CAPTURE(message);
  CHECK(has(message, part));
}

const std::string kConv = "[convolutional]\nfilters=4\nactivation=";
const std::string kLinear = kConv + "linear\n";

TEST_CASE("an imported convolution has its windows and groups") {
  check_sections(
      "[convolutional]\nfilters=6\nsize_y=3\nsize_x=5\nstride_y=2\nstride_x=1\npadding_y=1\n"
      "padding_x=2\ngroups=2\nactivation=linear\n",
      [](SmallGraph& graph) {
        graph.weights("w", {6, 2, 3, 5})
            .node("Conv", {"x", "w"}, {"y"})
            .with("group", Index{2})
            .with("strides", {2, 1})
            .with("pads", {1, 2, 1, 2});
      });
  check_sections("[convolutional]\nfilters=2\nsize=3\npad=1\ndilation=2\nactivation=linear\n",
                 [](SmallGraph& graph) {
                   graph.weights("w", {2, 4, 3, 3})
                       .node("Conv", {"x", "w"}, {"y"})
                       .with("dilations", {2, 2})
                       .with("pads", {2, 2, 2, 2});
                 });
  check_sections("[convolutional]\nfilters=2\nsize=3\npadding=1\nactivation=linear\n",
                 [](SmallGraph& graph) {
                   graph.weights("w", {2, 4, 3, 3})
                       .integers("pads", {0, 0, 1, 1, 0, 0, 1, 1})
                       .node("Pad", {"x", "pads"}, {"p"})
                       .node("Conv", {"p", "w"}, {"y"});
                 });
  check_sections("[convolutional]\nfilters=2\nsize=3\nstride=2\npadding_end=1\nactivation=linear\n",
                 [](SmallGraph& graph) {  // "same", of even maps
                   graph.weights("w", {2, 4, 3, 3})
                       .integers("pads", {0, 0, 0, 0, 0, 0, 1, 1})
                       .node("Pad", {"x", "pads"}, {"p"})
                       .node("Conv", {"p", "w"}, {"y"})
                       .with("strides", {2, 2});
                 });
  check_sections(
      "[convolutional]\nfilters=2\nsize=3\npadding_y=1\npadding_x=2\npadding_end_y=0\n"
      "padding_end_x=1\nactivation=linear\n",
      [](SmallGraph& graph) {
        graph.weights("w", {2, 4, 3, 3}).node("Conv", {"x", "w"}, {"y"}).with("pads", {1, 2, 0, 1});
      });
}

TEST_CASE("an imported transposed convolution has its weights by output channels") {
  SmallGraph graph({1, 2, 8, 6});
  graph.weights("w", {2, 3, 2, 2}).floats("b", {1, 2, 3});
  graph.node("ConvTranspose", {"x", "w", "b"}, {"t"}).with("strides", {2, 2});
  graph.norm("t", "n", 3).node("Relu", {"n"}, {"y"}).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections ==
        "[deconvolutional]\nbatch_normalize=1\nfilters=3\nsize=2\nstride=2\nactivation=relu\n");
  const std::vector<float> weights = imported.tensor("layers.0.weight");
  REQUIRE(weights.size() == 24);
  CHECK(weights[3] == doctest::Approx(0.53));  // of output channel 0 and input channel 0
  CHECK(weights[4] == doctest::Approx(0.62));  // and input channel 1: element 12 of the file
  CHECK(weights[8] == doctest::Approx(0.54));  // of output channel 1 and input channel 0
  const tests::TemporaryFolder folder;
  (void)import_onnx_weights(imported.folder / "m.onnx",
                            partitioner::read_model(imported.folder / "m.cfg"),
                            folder / "given.safetensors");
  CHECK(
      engine::SafetensorsReader(folder / "given.safetensors").read_all<float>("layers.0.weight") ==
      weights);
}

TEST_CASE("the padding of a transposed convolution says how large its map is") {
  const auto up = [](SmallGraph& graph) -> SmallGraph& {
    return graph.weights("w", {4, 2, 3, 3})
        .node("ConvTranspose", {"x", "w"}, {"y"})
        .with("strides", {2, 2});
  };
  const std::string section = "[deconvolutional]\nfilters=2\nsize=3\nstride=2\n";
  check_sections(section + "padding=1\npadding_end=0\nactivation=linear\n", [&](SmallGraph& graph) {
    up(graph).with("pads", {1, 1, 1, 1}).with("output_padding", {1, 1});
  });
  check_sections(section + "padding_end_y=-1\npadding_end_x=1\nactivation=linear\n",
                 [&](SmallGraph& graph) {
                   up(graph).with("pads", {0, 0, 0, 1}).with("output_padding", {1, 0});
                 });
  for (const char* const with : {"group", "dilations", "auto_pad", "output_shape"}) {
    check_refused("(ConvTranspose): a [deconvolutional] section has neither groups",
                  [&](SmallGraph& graph) {
                    const std::string name = with;
                    SmallGraph& node = up(graph);
                    name == "group"      ? node.with(name, Index{2})
                    : name == "auto_pad" ? node.with(name, "SAME_UPPER")
                                         : node.with(name, {2, 2});
                  });
  }
  check_refused(
      "(ConvTranspose): its weights are 2x4x3x3 (filters turned to the front), its input has",
      up,
      {1, 5, 8, 6});
  check_refused("its output_padding is -1, 0", [&](SmallGraph& graph) {
    up(graph).with("output_padding", {-1, 0});
  });
  check_refused("padding_end=-2", [&](SmallGraph& graph) {
    up(graph).with("output_padding", {2, 2});
  });
}

TEST_CASE("means of windows are depthwise convolutions that do not learn") {
  const auto pool = [](SmallGraph& graph) -> SmallGraph& {
    return graph.node("AveragePool", {"x"}, {"y"})
        .with("kernel_shape", {2, 3})
        .with("strides", {2, 1});
  };
  SmallGraph graph({1, 4, 8, 6});
  pool(graph).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections ==
        "[convolutional]\nfilters=4\nsize_y=2\nsize_x=3\nstride_y=2\nstride_x=1\ngroups=4\n"
        "activation=linear\nlearning_rate=0\n");
  CHECK(imported.tensor("layers.0.weight") == std::vector<float>(24, 1.0F / 6));
  CHECK(imported.tensor("layers.0.bias") == std::vector<float>(4, 0));
  check_refused("means of fewer cells", [&](SmallGraph& padded) {
    pool(padded).with("pads", {1, 1, 1, 1});
  });
  check_refused("means of fewer cells",
                [&](SmallGraph& reaching) { pool(reaching).with("ceil_mode", Index{1}); });
}

TEST_CASE("activations are imported as part of the layer before") {
  const auto alone = [](const char* kind) {
    return [kind](SmallGraph& graph) { graph.conv("x", "c").node(kind, {"c"}, {"y"}); };
  };
  check_sections(kConv + "relu\n", alone("Relu"));
  check_sections(kConv + "logistic\n", alone("Sigmoid"));
  check_sections(kConv + "tanh\n", alone("Tanh"));
  check_sections(kConv + "elu\n", alone("Elu"));
  check_sections(kConv + "mish\n", alone("Mish"));
  check_sections(kConv + "leaky\n", [](SmallGraph& graph) {
    graph.conv("x", "c").node("LeakyRelu", {"c"}, {"y"}).with("alpha", 0.1);
  });
  check_sections(kConv + "relu6\n", [](SmallGraph& graph) {
    graph.conv("x", "c").floats("a", {0}).floats("b", {6}).node("Clip", {"c", "a", "b"}, {"y"});
  });
  check_sections(kConv + "relu6\n", [](SmallGraph& graph) {
    graph.conv("x", "c")
        .node("Relu", {"c"}, {"a"})
        .floats("six", {6})
        .node("Sub", {"c", "six"}, {"d"})
        .node("Relu", {"d"}, {"b"})
        .node("Sub", {"a", "b"}, {"y"});
  });
  check_sections(kConv + "swish\n", [](SmallGraph& graph) {
    graph.conv("x", "c").node("Sigmoid", {"c"}, {"s"}).node("Mul", {"s", "c"}, {"y"});
  });
  check_sections(kConv + "hard_swish\n", alone("HardSwish"));
  check_sections(kConv + "hard_sigmoid\n", [](SmallGraph& graph) {
    graph.conv("x", "c").node("HardSigmoid", {"c"}, {"y"}).with("alpha", 1.0 / 6);
  });
  check_sections(kConv + "hard_swish\n", [](SmallGraph& graph) {
    graph.conv("x", "c")
        .node("HardSigmoid", {"c"}, {"s"})
        .with("alpha", 1.0 / 6)
        .node("Mul", {"c", "s"}, {"y"});
  });
  check_sections(kConv + "mish\n", [](SmallGraph& graph) {
    graph.conv("x", "c")
        .node("Softplus", {"c"}, {"p"})
        .node("Tanh", {"p"}, {"t"})
        .node("Mul", {"c", "t"}, {"y"});
  });
}

TEST_CASE("an activation of what others read, too, is a shortcut that adds nothing") {
  check_sections(kLinear +
                     "\n[shortcut]\nfrom=0\nbeta=0\nactivation=relu\n\n[shortcut]\nfrom="
                     "0\nactivation=linear\n",
                 [](SmallGraph& graph) {
                   graph.conv("x", "c").node("Relu", {"c"}, {"r"}).node("Add", {"c", "r"}, {"y"});
                 });
  SmallGraph graph;
  graph.conv("x", "c").node("Relu", {"c"}, {"r"}).output("c").output("r");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections == kLinear +
                                 "\n[shortcut]\nfrom=0\nbeta=0\nactivation=relu\n\n[route]\nlayers="
                                 "0\n\n[route]\nlayers=1\n");
}

TEST_CASE("an imported normalisation is part of its convolution, or a convolution of its own") {
  SmallGraph graph;
  graph.conv("x", "c").floats("b", {1, 2, 3, 4});
  graph.graph().mutable_node(0)->add_input("b");
  graph.norm("c", "n").with("momentum", 0.97).with("epsilon", 1e-3);
  graph.node("Relu", {"n"}, {"y"}).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections == "[convolutional]\nbatch_normalize=1\nfilters=4\nactivation=relu\n");
  CHECK(has(imported.net, "batch_norm_epsilon=0.001\nbatch_norm_rate=0.03"));
  // The bias is taken off with the mean.
  CHECK(imported.tensor("layers.0.bn.mean") ==
        std::vector<float>{-0.5F, 0.51F - 2, 0.52F - 3, 0.53F - 4});
  CHECK(imported.tensor("layers.0.bias") == std::vector<float>{0.5F, 0.51F, 0.52F, 0.53F});

  SmallGraph alone;
  alone.norm("x", "n").conv("n", "y").output("y");
  Imported before;
  import_to(before, alone);
  CHECK(before.sections ==
        "[convolutional]\nbatch_normalize=1\nfilters=4\ngroups=4\nactivation=linear\n\n" + kLinear);
  CHECK(before.tensor("layers.0.weight") == std::vector<float>{1, 1, 1, 1});
}

TEST_CASE("normalisations of several epsilons compute what they did") {
  SmallGraph graph;
  graph.conv("x", "c").norm("c", "n").with("epsilon", 0.25);
  graph.conv("n", "d").norm("d", "y").with("epsilon", 0.5).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(has(imported.net, "batch_norm_epsilon=0.25"));
  CHECK(imported.tensor("layers.0.bn.variance").front() == 0.5F);
  CHECK(imported.tensor("layers.1.bn.variance").front() == 0.75F);
}

TEST_CASE("pools are imported where their windows are Darknet's") {
  const auto pool = [](std::initializer_list<Index> pads, Index ceil) {
    return [pads, ceil](SmallGraph& graph) {
      graph.node("MaxPool", {"x"}, {"y"})
          .with("kernel_shape", {3, 3})
          .with("strides", {2, 2})
          .with("pads", pads)
          .with("ceil_mode", ceil);
    };
  };
  check_sections("[maxpool]\nsize=3\nstride=2\npadding=2\n", pool({1, 1, 1, 1}, 0));
  check_sections("[maxpool]\nsize=3\nstride=2\npadding=1\n", pool({0, 0, 0, 0}, 1));
  check_sections("[maxpool]\nsize=3\nstride=2\npadding=0\n", pool({0, 0, 0, 0}, 0));
  check_sections("[avgpool]\n",
                 [](SmallGraph& graph) { graph.node("GlobalAveragePool", {"x"}, {"y"}); });
  check_sections("[avgpool]\n", [](SmallGraph& graph) {
    graph.integers("axes", {-1, -2}).node("ReduceMean", {"x", "axes"}, {"y"});
  });
  check_sections(kLinear, [](SmallGraph& graph) {
    graph.conv("x", "c").node("AveragePool", {"c"}, {"y"}).with("kernel_shape", {1, 1});
  });
  check_sections("[maxpool]\nsize=3\nstride=2\npadding_y=0\npadding_x=2\n", pool({0, 1, 0, 1}, 0));
  check_sections("[maxpool]\nsize=3\nstride=2\npadding_y=1\npadding_x=2\n", pool({0, 1, 1, 1}, 0));
  check_refused("(MaxPool): is padded by 0 cells above and 3 below, 1 on the left",
                pool({0, 1, 3, 1}, 0));
}

TEST_CASE("products of a matrix become connected layers, their weights by outputs") {
  SmallGraph graph({0, 1, 2, 1});
  graph.weights("m", {2, 3}).floats("b", {1, 2, 3}).node("Flatten", {"x"}, {"f"});
  graph.node("MatMul", {"f", "m"}, {"p"}).node("Add", {"p", "b"}, {"y"}).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections == "[connected]\noutput=3\nactivation=linear\n");
  CHECK(imported.tensor("layers.0.weight") ==
        std::vector<float>{0.5F, 0.53F, 0.51F, 0.54F, 0.52F, 0.55F});
  CHECK(imported.tensor("layers.0.bias") == std::vector<float>{1, 2, 3});
  check_sections("[connected]\noutput=3\nactivation=linear\n\n[softmax]\n", [](SmallGraph& gemm) {
    gemm.weights("m", {3, 192})
        .node("Shape", {"x"}, {"s"})
        .integers("zero", {0})
        .node("Gather", {"s", "zero"}, {"n"})
        .integers("rest", {-1})
        .node("Concat", {"n", "rest"}, {"to"})
        .with("axis", Index{0})
        .node("Reshape", {"x", "to"}, {"f"})
        .node("Gemm", {"f", "m"}, {"g"})
        .with("transB", Index{1})
        .node("Softmax", {"g"}, {"y"});
  });
}

TEST_CASE("dropout is imported, and slices of channels") {
  check_sections(
      "[dropout]\nprobability=0.25\n\n[route]\nlayers=0\ngroups=2\ngroup_id=1\n",
      [](SmallGraph& graph) {
        graph.node("Dropout", {"x"}, {"d"})
            .with("ratio", 0.25)
            .integers("from", {2})
            .integers("to", {4})
            .integers("axis", {1})
            .node("Slice", {"d", "from", "to", "axis"}, {"y"});
      },
      {1, 4, 8, 6},
      11);
}

TEST_CASE("excitation, chunks and upsampling are imported") {
  check_sections(kLinear + "\n[avgpool]\n\n" + kConv +
                     "logistic\n\n[scale_channels]\nfrom=0\nactivation=linear\n",
                 [](SmallGraph& graph) {
                   graph.conv("x", "c")
                       .node("GlobalAveragePool", {"c"}, {"m"})
                       .conv("m", "e")
                       .node("Sigmoid", {"e"}, {"s"})
                       .node("Mul", {"c", "s"}, {"y"});
                 });
  check_sections(
      kLinear +
          "\n[route]\nlayers=0\ngroups=4\ngroup_id=0\n\n[route]\nlayers=0\ngroups=4\ngroup_id=1\n\n"
          "[route]\nlayers=0\ngroups=4\ngroup_id=2\n\n[route]\nlayers=0\ngroups=4\ngroup_id=3\n\n"
          "[route]\nlayers=2,3,4\n\n[route]\nlayers=5,1\n",
      [](SmallGraph& graph) {
        graph.conv("x", "c")
            .integers("parts", {1, 3})
            .node("Split", {"c", "parts"}, {"a", "b"})
            .with("axis", Index{1})
            .node("Concat", {"b", "a"}, {"y"})
            .with("axis", Index{1});
      });
  check_sections("[upsample]\nstride=2\n", [](SmallGraph& graph) {
    graph.floats("s", {1, 1, 2, 2})
        .node("Resize", {"x", "", "s"}, {"y"})
        .with("coordinate_transformation_mode", "asymmetric")
        .with("nearest_mode", "floor");
  });
  check_refused("(Resize): takes cells by 'asymmetric' and 'ceil'", [](SmallGraph& graph) {
    graph.floats("s", {1, 1, 2, 2})
        .node("Resize", {"x", "", "s"}, {"y"})
        .with("coordinate_transformation_mode", "asymmetric")
        .with("nearest_mode", "ceil");
  });
}

TEST_CASE(
    "slices by two rows and columns are space_to_depth with the channels of its weights moved") {
  SmallGraph graph({1, 1, 4, 4});
  graph.integers("axes", {2, 3}).integers("steps", {2, 2}).integers("ends", {9, 9});
  const std::vector<std::pair<Index, Index>> offsets = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  for (const auto& [row, col] : offsets) {
    const std::string name = std::to_string(row) + std::to_string(col);
    graph.integers("begin" + name, {row, col})
        .node("Slice", {"x", "begin" + name, "ends", "axes", "steps"}, {name});
  }
  graph.node("Concat", {"00", "10", "01", "11"}, {"f"}).with("axis", Index{1});
  graph.conv("f", "y", 1).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(has(imported.sections, "[space_to_depth]\nstride=2\n"));
  CHECK(imported.tensor("layers.1.weight") == std::vector<float>{0.5F, 0.52F, 0.51F, 0.53F});
}

TEST_CASE("what only rearranges the last maps is left out, and said") {
  SmallGraph graph({0, 4, 8, 6});
  graph.conv("x", "a").conv("x", "b").integers("to", {0, 4, -1});
  graph.node("Reshape", {"a", "to"}, {"p"}).node("Reshape", {"b", "to"}, {"q"});
  graph.node("Concat", {"p", "q"}, {"c"}).with("axis", Index{2});
  graph.node("Sigmoid", {"c"}, {"y"}).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections ==
        "[dropout]\nprobability=0\n\n" + kLinear + "\n[route]\nlayers=0\n\n" + kLinear);
  CHECK(has(imported.notices.front(), "4 nodes from 'node_p' (Reshape) on"));
  graph.graph().clear_output();
  graph.node("Exp", {"y"}, {"z"}).output("z");
  CHECK(has(refusal(graph), "'node_z' (Exp): no section of a model file computes this"));
  graph.graph().clear_output();
  graph.node("Relu", {"y"}, {"r"}).output("r");
  CHECK(has(refusal(graph), "'node_r' (Relu): computes with values of a map in another order"));
}

TEST_CASE("the size of an input is the file's, or asked for") {
  SmallGraph graph({0, 4, 0, 0});
  graph.conv("x", "y").output("y");
  CHECK(has(refusal(graph), "no fixed number of rows: say the size, as in --size 224x224"));
  Imported imported;
  import_to(imported, graph, {.rows = 10, .cols = 12});
  CHECK(imported.net == "[net]\nbatch=32\nheight=10\nwidth=12\nchannels=4");
}

TEST_CASE("products with constants are depthwise convolutions that do not learn") {
  const std::string section = "[convolutional]\nfilters=2\ngroups=2\nactivation=";
  SmallGraph graph({1, 2, 2, 2});
  graph.weights("w", {1, 2, 1, 1}).floats("four", {4}).weights("wide", {2, 2});
  graph.node("Mul", {"w", "x"}, {"m"}).node("Div", {"m", "four"}, {"d"});
  graph.node("Relu", {"d"}, {"y"}).output("y");
  Imported imported;
  import_to(imported, graph);
  CHECK(imported.sections ==
        section + "linear\nlearning_rate=0\n\n" + section + "relu\nlearning_rate=0\n");
  CHECK(imported.tensor("layers.0.weight") == std::vector<float>{0.5F, 0.51F});
  CHECK(imported.tensor("layers.1.weight") == std::vector<float>{0.25F, 0.25F});
  check_refused("(Mul): multiplies a map of 4 channels by 8x6 numbers: expected one number",
                [](SmallGraph& wide) {
                  wide.weights("w", {8, 6}).node("Mul", {"x", "w"}, {"y"});
                });
  check_refused("a weight of node 'node_y' is inf", [](SmallGraph& zero) {
    zero.floats("zero", {0}).node("Div", {"x", "zero"}, {"y"});
  });
}

TEST_CASE("channels of groups that are interleaved are a layer, others only lead to outputs") {
  const auto shuffle = [](SmallGraph& graph, std::initializer_list<Index> perm) {
    graph.integers("apart", {1, 2, 2, 8, 6}).integers("whole", {1, -1, 8, 6});
    graph.conv("x", "c").node("Reshape", {"c", "apart"}, {"a"});
    graph.node("Transpose", {"a"}, {"t"}).with("perm", perm);
    graph.node("Reshape", {"t", "whole"}, {"s"});
  };
  check_sections(kLinear + "\n[channel_shuffle]\ngroups=2\n\n" + kLinear, [&](SmallGraph& graph) {
    shuffle(graph, {0, 2, 1, 3, 4});
    graph.conv("s", "y");
  });
  check_refused("(Conv): computes with values of a map in another order", [&](SmallGraph& graph) {
    shuffle(graph, {0, 1, 2, 4, 3});
    graph.conv("s", "y");
  });
  check_sections(kLinear + "\n" + kLinear, [](SmallGraph& graph) {  // of a single group
    graph.integers("apart", {1, 1, 4, 8, 6}).integers("whole", {1, -1, 8, 6});
    graph.conv("x", "c").node("Reshape", {"c", "apart"}, {"a"});
    graph.node("Transpose", {"a"}, {"t"}).with("perm", {0, 2, 1, 3, 4});
    graph.node("Reshape", {"t", "whole"}, {"s"}).conv("s", "y");
  });
}

TEST_CASE("a map made larger between its cells is imported where cells lie as in PyTorch") {
  const auto resize = [](const char* mode, const char* places) {
    return [=](SmallGraph& graph) {
      graph.floats("scales", {1, 1, 3, 3})
          .node("Resize", {"x", "", "scales"}, {"y"})
          .with("mode", mode)
          .with("coordinate_transformation_mode", places);
    };
  };
  const std::string section = "[upsample]\nstride=3\nmode=bilinear\n";
  check_sections(section, resize("linear", "half_pixel"));
  check_sections(section, resize("linear", "pytorch_half_pixel"));
  check_refused("(Resize): takes values between cells by 'align_corners'",
                resize("linear", "align_corners"));
  check_refused("(Resize): takes values between cells by 'asymmetric'",
                resize("linear", "asymmetric"));
  check_refused("(Resize): resizes by mode 'cubic'", resize("cubic", "half_pixel"));
}

TEST_CASE("operators that no section has are refused by node and name") {
  for (const char* const kind : {"Det", "PRelu", "Gelu", "Exp", "Softplus"}) {
    check_refused("node 'node_y' (" + std::string(kind) + "): ",
                  [kind](SmallGraph& graph) { graph.node(kind, {"x"}, {"y"}); });
  }
  check_refused("(Sub): is no activation of a section", [](SmallGraph& graph) {
    graph.conv("x", "c").node("Sub", {"x", "c"}, {"y"});
  });
  check_refused("has an alpha of 0.2: activation=leaky has 0.1", [](SmallGraph& graph) {
    graph.node("LeakyRelu", {"x"}, {"y"}).with("alpha", 0.2);
  });
  check_refused("has an alpha of 0.2 and a beta of 0.5", [](SmallGraph& graph) {
    graph.node("HardSigmoid", {"x"}, {"y"});  // ONNX's own defaults
  });
  check_refused("the last convolution window of 1 cells would lie wholly outside the map of 8 rows",
                [](SmallGraph& graph) {
                  graph.conv("x", "y").with("pads", {0, 0, 1, 0});
                });
  check_refused("a padding that keeps the map's size", [](SmallGraph& graph) {
    graph.weights("w", {2, 4, 3, 3})
        .node("Conv", {"x", "w"}, {"y"})
        .with("dilations", {2, 2})
        .with("pads", {2, 2, 2, 1});
  });
  check_refused("has a graph of its own", [](SmallGraph& graph) {
    graph.node("If", {"x"}, {"y"});
    graph.graph().mutable_node(0)->add_attribute()->mutable_g()->set_name("then");
  });
}

TEST_CASE("files that lie are refused") {
  check_refused("strides are 0 and 0", [](SmallGraph& graph) {
    graph.conv("x", "y").with("strides", {0, 0});
  });
  check_refused("in 0 groups",
                [](SmallGraph& graph) { graph.conv("x", "y").with("group", Index{0}); });
  check_refused("reads 'b', which no node before it computes", [](SmallGraph& graph) {
    graph.node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Relu", {"b"}, {"y"});
  });
  check_refused("initializer 'w_y' is to have more numbers than there can be",
                [](SmallGraph& graph) {
                  graph.conv("x", "y").graph().mutable_initializer(0)->set_dims(0, Index{1} << 40U);
                });
  check_refused("initializer 'w_y' lies in another file", [](SmallGraph& graph) {
    graph.conv("x", "y").graph().mutable_initializer(0)->set_data_location(
        onnx::TensorProto::EXTERNAL);
  });
  check_refused("a weight of node 'node_y' is NaN", [](SmallGraph& graph) {
    graph.conv("x", "y").graph().mutable_initializer(0)->set_float_data(
        3, std::numeric_limits<float>::quiet_NaN());
  });
  check_refused("more than any picture",
                [](SmallGraph& graph) { graph.conv("x", "y"); },
                {1, 4, Index{1} << 40U, 8});
  check_refused("larger than any network needs", [](SmallGraph& graph) {
    graph.integers("s", {Index{1} << 40U})
        .node("ConstantOfShape", {"s"}, {"c"})
        .node("Reshape", {"x", "c"}, {"y"});
  });
  const TemporaryFolder folder;
  SmallGraph graph;
  const std::string bytes = graph.conv("x", "y").output("y").model.SerializeAsString();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    std::ofstream(folder / "m.onnx", std::ios::binary) << bytes.substr(0, length);
    CHECK(input_error_of([&] {
            (void)import_onnx({.from = folder / "m.onnx", .cfg = folder / "m.cfg"});
          }) != "");
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("a given model takes the weights of nodes, its normalisation where the file has none") {
  SmallGraph graph;
  graph.conv("x", "c").floats("b", {1, 2, 3, 4});
  graph.graph().mutable_node(0)->add_input("b");
  graph.node("Exp", {"c"}, {"y"}).output("y");
  const TemporaryFolder folder;
  graph.write(folder / "m.onnx");
  const auto model = [](const std::string& layer) {
    return partitioner::parse_model(
        "[net]\nheight=8\nwidth=6\nchannels=4\nbatch_norm_epsilon=0.44\n" + layer, "m.cfg");
  };
  (void)import_onnx_weights(folder / "m.onnx",
                            model("[convolutional]\nfilters=4\nbatch_normalize=1\n"),
                            folder / "m.safetensors");
  const engine::SafetensorsReader file(folder / "m.safetensors");
  CHECK(file.read_all<float>("layers.0.bias") == std::vector<float>{1, 2, 3, 4});
  CHECK(file.read_all<float>("layers.0.bn.scale") == std::vector<float>(4, 1.2F));
  CHECK(file.read_all<float>("layers.0.bn.mean") == std::vector<float>(4, 0));
  CHECK(file.read_all<float>("layers.0.bn.variance") == std::vector<float>(4, 1));
  const std::string message = input_error_of([&] {
    (void)import_onnx_weights(
        folder / "m.onnx", model("[convolutional]\nfilters=5\n"), folder / "n.safetensors");
  });
  CHECK(
      has(message, "'node_c' are 4x4x1x1, those of layer 0 (convolutional) of the model 5x4x1x1"));
  CHECK(!std::filesystem::exists(folder / "n.safetensors"));
}

TEST_CASE("weights of YOLOX's own files are turned to pixels from 0 to 1 with red first") {
  SmallGraph graph({1, 3, 8, 8});
  std::vector<std::string> slices;
  // Top left, bottom left, top right, bottom right.
  for (const auto& [row, col] : {std::pair{0, 0}, {1, 0}, {0, 1}, {1, 1}}) {
    const std::string name = "at" + std::to_string(row) + std::to_string(col);
    graph.integers(name + "_b", {row, col})
        .integers(name + "_e", {8, 8})
        .integers(name + "_a", {2, 3})
        .integers(name + "_s", {2, 2})
        .node("Slice", {"x", name + "_b", name + "_e", name + "_a", name + "_s"}, {name});
    slices.push_back(name);
  }
  graph.node("Concat", slices, {"f"}).with("axis", Index{1});
  graph.weights("w", {6, 12, 1, 1}).node("Conv", {"f", "w"}, {"y"}).output("y");
  const auto& stored = graph.graph().initializer().rbegin()->float_data();
  const std::vector<float> weights(stored.begin(), stored.end());
  const TemporaryFolder folder;
  graph.write(folder / "m.onnx");
  const auto model = partitioner::parse_model(
      "[net]\nheight=8\nwidth=8\nchannels=3\n[space_to_depth]\nstride=2\n"
      "[convolutional]\nfilters=6\n[yolox]\nclasses=1\n",
      "m.cfg");
  const auto said = import_onnx_weights(folder / "m.onnx", model, folder / "m.safetensors");
  CHECK(said.size() == 1);
  const engine::SafetensorsReader file(folder / "m.safetensors");
  const auto found = file.read_all<float>("layers.1.weight");
  // Blocks here are top left, top right, bottom left, bottom right.
  const std::vector<int> from{2, 1, 0, 8, 7, 6, 5, 4, 3, 11, 10, 9};
  for (std::size_t i = 0; i < from.size(); ++i) {
    CHECK(found[12 + i] == 255 * weights[12 + static_cast<std::size_t>(from[i])]);
  }
}

}  // namespace
