// A graph of a few nodes as an ONNX file, for what a reader makes of it.

#pragma once

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <onnx/onnx_pb.h>
#include <string>
#include <vector>

#include "partitioner/base/region.h"

namespace tessera::tests {

class SmallGraph {
 public:
  // One input "x" of that shape.
  explicit SmallGraph(const std::vector<Index>& shape = {1, 4, 8, 6}, Index opset = 13) {
    model.set_ir_version(7);
    model.add_opset_import()->set_version(opset);
    onnx::ValueInfoProto& input = *graph().add_input();
    input.set_name("x");
    for (const Index side : shape) {
      auto& dimension = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
      if (side > 0) {
        dimension.set_dim_value(side);
      } else {
        dimension.set_dim_param("any");
      }
    }
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }

  // The last one added; named after its first output.
  SmallGraph& node(const std::string& kind,
                   const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
    onnx::NodeProto& added = *graph().add_node();
    added.set_op_type(kind);
    added.set_name(outputs.empty() ? kind : "node_" + outputs.front());
    *added.mutable_input() = {inputs.begin(), inputs.end()};
    *added.mutable_output() = {outputs.begin(), outputs.end()};
    return *this;
  }
  SmallGraph& with(const std::string& name, Index value) {
    attribute(name).set_i(value);
    return *this;
  }
  SmallGraph& with(const std::string& name, double value) {
    attribute(name).set_f(static_cast<float>(value));
    return *this;
  }
  SmallGraph& with(const std::string& name, const char* value) {
    attribute(name).set_s(value);
    return *this;
  }
  SmallGraph& with(const std::string& name, std::initializer_list<Index> values) {
    onnx::AttributeProto& added = attribute(name);
    *added.mutable_ints() = {values.begin(), values.end()};
    return *this;
  }

  // Numbers 0.5, 0.51, 0.52, ...
  SmallGraph& weights(const std::string& name, const std::vector<Index>& shape) {
    onnx::TensorProto& added = tensor(name, shape, onnx::TensorProto::FLOAT);
    Index count = 1;
    for (const Index side : shape) {
      count *= side;
    }
    for (Index i = 0; i < count; ++i) {
      added.add_float_data(0.5F + 0.01F * static_cast<float>(i));
    }
    return *this;
  }
  SmallGraph& floats(const std::string& name, const std::vector<float>& values) {
    onnx::TensorProto& added =
        tensor(name, {static_cast<Index>(values.size())}, onnx::TensorProto::FLOAT);
    *added.mutable_float_data() = {values.begin(), values.end()};
    return *this;
  }
  SmallGraph& integers(const std::string& name, const std::vector<Index>& values) {
    onnx::TensorProto& added =
        tensor(name, {static_cast<Index>(values.size())}, onnx::TensorProto::INT64);
    *added.mutable_int64_data() = {values.begin(), values.end()};
    return *this;
  }

  // A convolution of 1x1 with so many filters, of 4 channels unless said otherwise.
  SmallGraph& conv(const std::string& from,
                   const std::string& to,
                   Index filters = 4,
                   Index channels = 4) {
    return weights("w_" + to, {filters, channels, 1, 1}).node("Conv", {from, "w_" + to}, {to});
  }
  SmallGraph& norm(const std::string& from, const std::string& to, Index channels = 4) {
    for (const char* const each : {"scale", "shift", "mean", "variance"}) {
      weights(to + each, {channels});
    }
    return node("BatchNormalization",
                {from, to + "scale", to + "shift", to + "mean", to + "variance"},
                {to});
  }

  SmallGraph& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }

  void write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    file << model.SerializeAsString();
  }

  onnx::ModelProto model;

 private:
  onnx::AttributeProto& attribute(const std::string& name) {
    onnx::AttributeProto& added = *graph().mutable_node()->rbegin()->add_attribute();
    added.set_name(name);
    return added;
  }
  onnx::TensorProto& tensor(const std::string& name,
                            const std::vector<Index>& shape,
                            onnx::TensorProto::DataType type) {
    onnx::TensorProto& added = *graph().add_initializer();
    added.set_name(name);
    added.set_data_type(type);
    *added.mutable_dims() = {shape.begin(), shape.end()};
    return added;
  }
};

}  // namespace tessera::tests
