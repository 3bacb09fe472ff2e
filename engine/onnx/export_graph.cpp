#include "engine/onnx/export_graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace tessera::engine {

namespace {

void set_attribute(onnx::AttributeProto& message, const GraphAttribute& attribute) {
  message.set_name(attribute.name);
  if (const auto* number = std::get_if<Index>(&attribute.value)) {
    message.set_type(onnx::AttributeProto::INT);
    message.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.set_type(onnx::AttributeProto::FLOAT);
    message.set_f(*real);
  } else if (const auto* numbers = std::get_if<std::vector<Index>>(&attribute.value)) {
    message.set_type(onnx::AttributeProto::INTS);
    message.mutable_ints()->Add(numbers->begin(), numbers->end());
  } else {
    message.set_type(onnx::AttributeProto::STRING);
    message.set_s(std::get<std::string>(attribute.value));
  }
}

}  // namespace

std::string GraphBuilder::new_name(const std::string& what) {
  return fmt::format("{}.{}_{}", prefix_, what, names_++);
}

void GraphBuilder::describe(onnx::ValueInfoProto& described, const GraphValue& value) const {
  described.set_name(value.name);
  onnx::TypeProto::Tensor& tensor = *described.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  for (const Index size : value.shape) {
    onnx::TensorShapeProto::Dimension& dimension = *tensor.mutable_shape()->add_dim();
    if (size == 0) {
      dimension.set_dim_param("batch");
    } else {
      dimension.set_dim_value(size);
    }
  }
}

GraphValue GraphBuilder::input(const std::string& name, std::vector<Index> shape) {
  GraphValue value{name, std::move(shape)};
  describe(*graph_.add_input(), value);
  return value;
}

void GraphBuilder::output(const GraphValue& value, const std::string& name) {
  const auto& nodes = graph_.node();
  const bool is_made = std::any_of(nodes.begin(), nodes.end(), [&](const onnx::NodeProto& node) {
    return node.output(0) == value.name;
  });
  if (!is_made) {  // the input, or a value that has another name by now
    const auto other = renamed_.find(value.name);
    const std::string& present = other == renamed_.end() ? value.name : other->second;
    return output(unary("Identity", {present, value.shape}), name);
  }
  for (onnx::NodeProto& node : *graph_.mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      input = input == value.name ? name : input;
    }
    if (node.output(0) == value.name) {
      node.set_output(0, name);
    }
  }
  renamed_[value.name] = name;
  describe(*graph_.add_output(), {name, value.shape});
}

GraphValue GraphBuilder::node(const char* operation,
                              const std::vector<GraphValue>& inputs,
                              std::vector<Index> shape,
                              const std::vector<GraphAttribute>& attributes) {
  GraphValue value{new_name(operation), std::move(shape)};
  onnx::NodeProto& message = *graph_.add_node();
  message.set_name(value.name);
  message.set_op_type(operation);
  for (const GraphValue& input : inputs) {
    message.add_input(input.name);
  }
  message.add_output(value.name);
  for (const GraphAttribute& attribute : attributes) {
    set_attribute(*message.add_attribute(), attribute);
  }
  return value;
}

GraphValue GraphBuilder::constant(const std::string& name,
                                  std::vector<Index> shape,
                                  std::span<const float> values) {
  GraphValue value{fmt::format("{}.{}", prefix_, name), std::move(shape)};
  *graph_.add_initializer() = tensor_message(value.name, value.shape, values);
  return value;
}

GraphValue GraphBuilder::integers(const std::string& name, const std::vector<Index>& values) {
  GraphValue value{new_name(name), {std::ssize(values)}};
  *graph_.add_initializer() =
      tensor_message(value.name, value.shape, std::span<const std::int64_t>(values));
  return value;
}

GraphValue GraphBuilder::binary(const char* operation, const GraphValue& a, double b) {
  const auto number = static_cast<float>(b);
  const GraphValue constant{new_name("number"), {}};
  *graph_.add_initializer() =
      tensor_message(constant.name, constant.shape, std::span(&number, std::size_t{1}));
  return binary(operation, a, constant);
}

GraphValue GraphBuilder::reshape(const GraphValue& in, std::vector<Index> shape) {
  return node("Reshape", {in, integers("shape", shape)}, shape);
}

GraphValue GraphBuilder::transpose(const GraphValue& in, const std::vector<Index>& order) {
  std::vector<Index> shape;
  for (const Index axis : order) {
    shape.push_back(in.shape[static_cast<std::size_t>(axis)]);
  }
  return node("Transpose", {in}, shape, {{"perm", order}});
}

GraphValue GraphBuilder::slice(const GraphValue& in,
                               std::size_t axis,
                               const Range& cells,
                               Index step) {
  if (cells == Range{0, in.shape[axis]} && step == 1) {
    return in;
  }
  std::vector<GraphValue> inputs{in,
                                 integers("starts", {cells.begin}),
                                 integers("ends", {cells.end}),
                                 integers("axes", {static_cast<Index>(axis)})};
  if (step != 1) {
    inputs.push_back(integers("steps", {step}));
  }
  std::vector<Index> shape = in.shape;
  shape[axis] = (cells.size() + step - 1) / step;
  return node("Slice", inputs, shape);
}

GraphValue GraphBuilder::concat(const std::vector<GraphValue>& inputs, std::size_t axis) {
  if (inputs.size() == 1) {
    return inputs.front();
  }
  std::vector<Index> shape = inputs.front().shape;
  shape[axis] = 0;
  for (const GraphValue& input : inputs) {
    shape[axis] += input.shape[axis];
  }
  return node("Concat", inputs, shape, {{"axis", static_cast<Index>(axis)}});
}

}  // namespace tessera::engine
