#include "engine/onnx/import_nodes.h"

#include <algorithm>
#include <fmt/format.h>

namespace tessera::engine {

namespace {

class NodeWeights {
 public:
  explicit NodeWeights(const OnnxFile& file) : file_(file) {
    for (const onnx::TensorProto& tensor : file.graph().initializer()) {
      constants_[tensor.name()] =
          stored_constant(file, fmt::format("initializer '{}'", tensor.name()), tensor);
    }
  }

  void add(const onnx::NodeProto& node) {
    const std::string& kind = node.op_type();
    if (kind == "Constant") {
      constants_[output(node)] = constant_of(file_, node);
    } else if (is_view(node)) {
      std::vector<const Constant*> inputs;
      for (int i = 0; i < node.input_size(); ++i) {
        inputs.push_back(constant(node, i));
      }
      constants_[output(node)] = folded(file_, node, inputs, budget_).value();
    } else if (kind == "Conv" || kind == "ConvTranspose" || kind == "Gemm" || kind == "MatMul") {
      add_weights(node);
    } else if (kind == "BatchNormalization") {
      add_norm(node);
    } else if (kind == "Add") {
      add_bias(node);
    }
  }

  [[nodiscard]] std::vector<ImportedParameters> take() { return std::move(all_); }

 private:
  // The same constant in another shape or order.
  [[nodiscard]] bool is_view(const onnx::NodeProto& node) const {
    constexpr std::string_view kViews[] = {"Identity", "Transpose", "Reshape", "Cast"};
    bool constant_inputs = node.input_size() > 0;
    for (int i = 0; i < node.input_size(); ++i) {
      constant_inputs = constant_inputs && constant(node, i) != nullptr;
    }
    return constant_inputs &&
           std::find(std::begin(kViews), std::end(kViews), node.op_type()) != std::end(kViews);
  }

  [[nodiscard]] const std::string& output(const onnx::NodeProto& node) const {
    if (node.output_size() == 0) {
      file_.refuse(node, "has no output");
    }
    return node.output(0);
  }

  [[nodiscard]] const Constant* constant(const onnx::NodeProto& node, int i) const {
    const auto found = has_input(node, i) ? constants_.find(node.input(i)) : constants_.end();
    return found == constants_.end() ? nullptr : &found->second;
  }

  // Of what computed an input of the node, if that has weights.
  [[nodiscard]] ImportedParameters* source(const onnx::NodeProto& node, int i) {
    const auto found = has_input(node, i) ? places_.find(node.input(i)) : places_.end();
    return found == places_.end() ? nullptr : &all_[found->second];
  }

  void add_weights(const onnx::NodeProto& node) {
    const Constant* weight = constant(node, 1);
    const bool goes_up = node.op_type() == "ConvTranspose";
    const bool is_conv = node.op_type() == "Conv" || goes_up;
    if (weight == nullptr ||
        (!is_conv && (weight->shape.size() != 2 || weight->stored == nullptr))) {
      return;  // a product of maps, or what decodes them
    }
    if (is_conv && weight->shape.size() != 4) {
      file_.refuse(node,
                   fmt::format("its weights are {}: only convolutions over rows and columns",
                               sides(weight->shape)));
    }
    ImportedParameters parameters{.node = node.name(), .weight = *weight};
    if (goes_up || node.op_type() == "MatMul" ||
        (node.op_type() == "Gemm" && integer(node, "transB", 0) == 0)) {
      turn(parameters.weight);
    }
    if (const Constant* bias = node.op_type() == "MatMul" ? nullptr : constant(node, 2)) {
      expect_outputs(node, *bias, parameters);
      parameters.bias = *bias;
    }
    places_[output(node)] = all_.size();
    all_.push_back(std::move(parameters));
  }

  void expect_outputs(const onnx::NodeProto& node,
                      const Constant& vector,
                      const ImportedParameters& of) const {
    const Index outputs = of.weight.shape[0];
    if (volume_of(vector.shape) != outputs) {
      file_.refuse(
          node, fmt::format("has parameters of {} for {} outputs", sides(vector.shape), outputs));
    }
  }

  void add_norm(const onnx::NodeProto& node) {
    ImportedNorm norm{.epsilon = real(node, "epsilon", static_cast<double>(1e-5F))};
    Constant* const vectors[] = {&norm.scale, &norm.shift, &norm.mean, &norm.variance};
    for (int i = 0; i < 4; ++i) {
      const Constant* vector = constant(node, i + 1);
      if (vector == nullptr) {
        file_.refuse(node, "expected parameters that are constants");
      }
      *vectors[i] = *vector;
    }
    ImportedParameters* of = source(node, 0);
    if (of == nullptr || of->norm) {
      const Index channels = volume_of(norm.scale.shape);
      all_.push_back(
          {.node = node.name(), .weight = {.shape = {channels, 1, 1, 1}, .numbers = {1}}});
      of = &all_.back();
    }
    for (const Constant* vector : vectors) {
      expect_outputs(node, *vector, *of);
    }
    of->norm = std::move(norm);
  }

  void add_bias(const onnx::NodeProto& node) {
    for (const int i : {0, 1}) {
      ImportedParameters* of = source(node, i);
      const Constant* bias = constant(node, 1 - i);
      if (of != nullptr && bias != nullptr && !of->bias && !of->norm &&
          volume_of(bias->shape) == of->weight.shape[0]) {
        of->bias = *bias;
      }
    }
  }

  const OnnxFile& file_;
  std::unordered_map<std::string, Constant> constants_;
  std::unordered_map<std::string, std::size_t> places_;  // in all_, by what the node computes
  std::vector<ImportedParameters> all_;
  FoldingBudget budget_;
};

}  // namespace

std::vector<ImportedParameters> weighted_nodes(const OnnxFile& file) {
  NodeWeights weights(file);
  for (const onnx::NodeProto& node : file.graph().node()) {
    weights.add(node);
  }
  return weights.take();
}

}  // namespace tessera::engine
