// Activations: part of the layer before, or where others read that one, of a shortcut from it that
// adds nothing.

#include "engine/onnx/import_activations.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace tessera::engine {

namespace {

using partitioner::Activation;

bool activate(partitioner::Operation& operation, Activation activation) {
  return std::visit(
      [activation]<class Kind>(Kind& layer) {
        if constexpr (requires { layer.activation; }) {
          const bool is_free = layer.activation == Activation::Linear;
          layer.activation = is_free ? activation : layer.activation;
          return is_free;
        }
        return false;
      },
      operation);
}

void put_only_activated(Translation& translation,
                        const onnx::NodeProto& node,
                        Activation activation) {
  put_activated(translation, node, translation.values(node, 0), node.input(0), activation);
}

// The node whose product with `name` makes an activation of it, where that alone reads `factor`.
bool is_multiplied(const Translation& translation,
                   const std::string& factor,
                   const std::string& name) {
  const onnx::NodeProto* reader = translation.only_reader(factor);
  return reader != nullptr && reader->op_type() == "Mul" && reader->input_size() == 2 &&
         (reader->input(0) == name || reader->input(1) == name);
}

void put_factor(Translation& translation,
                const onnx::NodeProto& node,
                Activation activation,
                const std::string& argument) {
  Value factor = translation.values(node, 0);
  factor.form = Value::Form::Factor;
  factor.activation = activation;
  factor.argument = argument;
  translation.put(node, 0, std::move(factor));
}

// Whether a value is what a shortcut made of the map of a layer.
bool is_relu_of(const Translation& translation, const Value& value, int layer) {
  if (value.layer == partitioner::kImage) {
    return false;
  }
  const partitioner::LayerSpec& spec = translation.network().layer(value.layer);
  return spec.operation == partitioner::Operation(
                               partitioner::Shortcut{.activation = Activation::Relu, .beta = 0}) &&
         spec.inputs == std::vector<int>{layer, layer};
}

void translate_sigmoid(Translation& translation, const onnx::NodeProto& node) {
  if (translation.input(node, 0).form == Value::Form::Rearranged) {
    translation.put_rearranged(node, 0, translation.input(node, 0).shape);
  } else if (is_multiplied(translation, node.output(0), node.input(0))) {
    put_factor(translation, node, Activation::Swish, node.input(0));
  } else {
    put_only_activated(translation, node, Activation::Logistic);
  }
}

// With the numbers of PyTorch; ONNX's own defaults are others.
void translate_hard_sigmoid(Translation& translation, const onnx::NodeProto& node) {
  const double alpha = real(node, "alpha", 0.2);
  const double beta = real(node, "beta", 0.5);
  if (static_cast<float>(alpha) != 1.0F / 6 || beta != 0.5) {
    translation.refuse(node,
                       fmt::format("has an alpha of {:g} and a beta of {:g}: "
                                   "activation=hard_sigmoid has 1/6 and 1/2",
                                   alpha,
                                   beta));
  }
  if (is_multiplied(translation, node.output(0), node.input(0))) {
    put_factor(translation, node, Activation::HardSwish, node.input(0));
  } else {
    put_only_activated(translation, node, Activation::HardSigmoid);
  }
}

// Mish is x * tanh(softplus(x)).
void translate_softplus(Translation& translation, const onnx::NodeProto& node) {
  const onnx::NodeProto* tanh = translation.only_reader(node.output(0));
  if (tanh == nullptr || tanh->op_type() != "Tanh" || tanh->output_size() != 1 ||
      !is_multiplied(translation, tanh->output(0), node.input(0))) {
    translation.refuse(node, "is no activation of a section, but for Mish: x * tanh(softplus(x))");
  }
  put_factor(translation, node, Activation::Mish, node.input(0));
}

void translate_tanh(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  if (in.form == Value::Form::Factor) {
    translation.put(node, 0, in);
    return;
  }
  put_only_activated(translation, node, Activation::Tanh);
}

void translate_with_alpha(Translation& translation, const onnx::NodeProto& node) {
  const bool is_leaky = node.op_type() == "LeakyRelu";
  const double alpha = real(node, "alpha", is_leaky ? 0.01 : 1.0);
  const double known = is_leaky ? 0.1 : 1.0;
  if (static_cast<float>(alpha) != static_cast<float>(known)) {
    translation.refuse(node,
                       fmt::format("has an alpha of {:g}: activation={} has {:g}",
                                   alpha,
                                   is_leaky ? "leaky" : "elu",
                                   known));
  }
  put_only_activated(translation, node, is_leaky ? Activation::Leaky : Activation::Elu);
}

double bound_of(const Translation& translation,
                const onnx::NodeProto& node,
                int place,
                const char* name,
                double otherwise) {
  return has_input(node, place) ? translation.number(node, place, name)
                                : real(node, name, otherwise);
}

void translate_clip(Translation& translation, const onnx::NodeProto& node) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double least = bound_of(translation, node, 1, "min", -kLargest);
  const double most = bound_of(translation, node, 2, "max", kLargest);
  if (least != 0 || (most != 6 && most < kLargest)) {
    translation.refuse(
        node, fmt::format("clips to {:g} ... {:g}: activation=relu6 has 0 ... 6", least, most));
  }
  put_only_activated(translation, node, most == 6 ? Activation::Relu6 : Activation::Relu);
}

// relu6(x) is relu(x) - relu(x - 6), which this program exports, since others know Clip in several
// forms. Of x - 6 the rest is known to come: a second Relu, and the difference.
void translate_difference(Translation& translation, const onnx::NodeProto& node) {
  const Value second = translation.input(node, 1);
  const onnx::NodeProto* reader = translation.only_reader(node.output(0));
  if (second.form == Value::Form::Constant && volume_of(second.shape) == 1 &&
      translation.number(node, 1, "constant") == 6 && reader != nullptr &&
      reader->op_type() == "Relu") {
    put_factor(translation, node, Activation::Relu6, node.input(0));
    return;
  }
  if (second.form == Value::Form::Factor && second.activation == Activation::Relu6 &&
      is_relu_of(translation, translation.values(node, 0), second.layer) &&
      translation.is_only_reader(node, 0) && translation.is_only_reader(node, 1)) {
    put_activated(translation, node, second, second.argument, Activation::Relu6, 2);
    return;
  }
  translation.refuse(node, "is no activation of a section, but for ReLU6: relu(x) - relu(x - 6)");
}

void translate_relu(Translation& translation, const onnx::NodeProto& node) {
  const Value in = translation.input(node, 0);
  if (in.form == Value::Form::Factor && in.activation == Activation::Relu6) {
    translation.put(node, 0, in);
  } else {
    put_only_activated(translation, node, Activation::Relu);
  }
}

template <Activation activation>
void translate_plain(Translation& translation, const onnx::NodeProto& node) {
  if (real(node, "alpha", 1) != 1) {  // Swish has one
    translation.refuse(node, "expected an alpha of 1");
  }
  put_only_activated(translation, node, activation);
}

constexpr OperatorRow kActivationRows[] = {{"Relu", translate_relu},
                                           {"Sub", translate_difference},
                                           {"LeakyRelu", translate_with_alpha},
                                           {"Elu", translate_with_alpha},
                                           {"Sigmoid", translate_sigmoid, true},
                                           {"HardSigmoid", translate_hard_sigmoid},
                                           {"HardSwish", translate_plain<Activation::HardSwish>},
                                           {"Tanh", translate_tanh},
                                           {"Softplus", translate_softplus},
                                           {"Mish", translate_plain<Activation::Mish>},
                                           {"Swish", translate_plain<Activation::Swish>},
                                           {"Clip", translate_clip}};

}  // namespace

void put_activated(Translation& translation,
                   const onnx::NodeProto& node,
                   const Value& argument,
                   const std::string& name,
                   Activation activation,
                   int times) {
  const std::vector<Index> shape = argument.shape;
  int layer = argument.layer;
  if (layer == partitioner::kImage || !translation.is_read_only(name, times) ||
      !activate(translation.operation(layer), activation)) {
    layer = translation.add(
        node, partitioner::Shortcut{.activation = activation, .beta = 0}, {layer, layer});
  }
  translation.put(node, 0, {.layer = layer, .shape = shape});
}

OperatorRows activation_operators() {
  return kActivationRows;
}

}  // namespace tessera::engine
