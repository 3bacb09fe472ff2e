// Builds the graph of an ONNX file node by node. Names begin with that of the layer they belong to.
//
// Everything is written so that OpenCV 4.6 reads it, too: bounds and axes are initializers of
// integers, and what is added to or multiplied with a value of three dimensions has its full size
// or is a single number.

#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/onnx/messages.h"

namespace tessera::engine {

// A value and its shape; the first number is that of images, 0 where that may be any.
struct GraphValue {
  std::string name;
  std::vector<Index> shape;
};

struct GraphAttribute {
  std::string name;
  std::variant<Index, float, std::vector<Index>, std::string> value;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(onnx::GraphProto& graph) : graph_(graph) {}

  // What follows is named after it: "layers.3".
  void begin(std::string prefix) { prefix_ = std::move(prefix); }

  [[nodiscard]] GraphValue input(const std::string& name, std::vector<Index> shape);
  // Gives a value of the graph that name.
  void output(const GraphValue& value, const std::string& name);

  GraphValue node(const char* operation,
                  const std::vector<GraphValue>& inputs,
                  std::vector<Index> shape,
                  const std::vector<GraphAttribute>& attributes = {});

  // An initializer, "layers.3." and the name.
  GraphValue constant(const std::string& name,
                      std::vector<Index> shape,
                      std::span<const float> values);
  GraphValue integers(const std::string& name, const std::vector<Index>& values);

  // Nodes whose output has the shape of the first input.
  GraphValue unary(const char* operation, const GraphValue& in) {
    return node(operation, {in}, in.shape);
  }
  GraphValue binary(const char* operation, const GraphValue& a, const GraphValue& b) {
    return node(operation, {a, b}, a.shape);
  }
  // With a single number.
  GraphValue binary(const char* operation, const GraphValue& a, double b);

  GraphValue reshape(const GraphValue& in, std::vector<Index> shape);
  GraphValue transpose(const GraphValue& in, const std::vector<Index>& order);
  // Cells begin, begin + step, ... before end of an axis; all of them: no node.
  GraphValue slice(const GraphValue& in, std::size_t axis, const Range& cells, Index step = 1);
  // One alone: no node.
  GraphValue concat(const std::vector<GraphValue>& inputs, std::size_t axis);
  GraphValue softmax(const GraphValue& in, Index axis) {
    return node("Softmax", {in}, in.shape, {{"axis", axis}});
  }

 private:
  [[nodiscard]] std::string new_name(const std::string& what);
  void describe(onnx::ValueInfoProto& described, const GraphValue& value) const;

  onnx::GraphProto& graph_;
  std::string prefix_;
  Index names_ = 0;
  std::map<std::string, std::string> renamed_;  // values that are put out
};

}  // namespace tessera::engine
