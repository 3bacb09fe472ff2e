#include "engine/onnx/export_activation.h"

namespace tessera::engine {

using partitioner::Activation;

namespace {

GraphValue relu6(GraphBuilder& graph, const GraphValue& in) {
  const GraphValue positive = graph.unary("Relu", in);
  return graph.binary("Sub", positive, graph.unary("Relu", graph.binary("Sub", in, 6)));
}

GraphValue ramp(GraphBuilder& graph, const GraphValue& in) {
  const GraphValue positive = graph.unary("Relu", in);
  return graph.binary("Add", positive, graph.binary("Mul", in, 0.1));
}

GraphValue hard_mish(GraphBuilder& graph, const GraphValue& in) {
  // in between -2 and 0, then the parabola through both ends, 0.
  const GraphValue positive = graph.unary("Relu", in);
  const GraphValue above = graph.unary("Relu", graph.binary("Add", in, 2));
  const GraphValue between = graph.binary("Sub", graph.binary("Sub", above, positive), 2);
  const GraphValue half = graph.binary("Add", graph.binary("Mul", between, 0.5), 1);
  return graph.binary("Add", positive, graph.binary("Mul", between, half));
}

GraphValue gelu(GraphBuilder& graph, const GraphValue& in) {
  const GraphValue square = graph.binary("Mul", in, in);
  const GraphValue factor = graph.binary("Add", graph.binary("Mul", square, 0.035677), 0.797885);
  const GraphValue tanh = graph.unary("Tanh", graph.binary("Mul", in, factor));
  const GraphValue half = graph.binary("Mul", in, 0.5);
  return graph.binary("Mul", half, graph.binary("Add", tanh, 1));
}

GraphValue hard_swish(GraphBuilder& graph, const GraphValue& in) {
  const GraphValue factor =
      graph.node("HardSigmoid", {in}, in.shape, {{"alpha", 1.0F / 6}, {"beta", 0.5F}});
  return graph.binary("Mul", in, factor);
}

// OpenCV 4.6 does not multiply a map by what HardSigmoid makes of a cell.
GraphValue hard_sigmoid(GraphBuilder& graph, const GraphValue& in) {
  return graph.binary("Mul", relu6(graph, graph.binary("Add", in, 3)), 1.0 / 6);
}

}  // namespace

GraphValue activated(GraphBuilder& graph, Activation activation, const GraphValue& in) {
  switch (activation) {
    case Activation::Linear:
      return in;
    case Activation::Relu:
      return graph.unary("Relu", in);
    case Activation::Leaky:
      return graph.node("LeakyRelu", {in}, in.shape, {{"alpha", 0.1F}});
    case Activation::Relu6:
      return relu6(graph, in);
    case Activation::Elu:
      return graph.unary("Elu", in);
    case Activation::Logistic:
      return graph.unary("Sigmoid", in);
    case Activation::Tanh:
      return graph.unary("Tanh", in);
    case Activation::Swish:
      return graph.binary("Mul", in, graph.unary("Sigmoid", in));
    case Activation::Mish:
      return graph.binary("Mul", in, graph.unary("Tanh", graph.unary("Softplus", in)));
    case Activation::Ramp:
      return ramp(graph, in);
    case Activation::HardMish:
      return hard_mish(graph, in);
    case Activation::Gelu:
      return gelu(graph, in);
    case Activation::HardSigmoid:
      return hard_sigmoid(graph, in);
    case Activation::HardSwish:
      return hard_swish(graph, in);
  }
  return in;
}

}  // namespace tessera::engine
