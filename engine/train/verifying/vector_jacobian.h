// The vector-Jacobian product of a network: its output, and the gradients of <output,
// output_gradient> for the input and each parameter. All that is needed to compare this program
// with any other.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/layers/layer.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

struct NamedTensor {
  std::vector<Index> shape;
  std::vector<double> values;
};

using NamedTensors = std::map<std::string, NamedTensor>;

struct VectorJacobianOptions {
  const partitioner::Network& network;
  partitioner::Partition partition;
  BatchNormMode batch_norm = BatchNormMode::Sync;
  partitioner::NormRule norm = {};
  std::string source = "the input";  // where the tensors are from, for messages
};

// Of a network with heads, with "boxes" (N, M, 5: class, x, y, width, height, from 0 to 1; rows
// of a class of -1 are none) in `in`: no "output_gradient" then, since what is sent back is what
// the boxes say. Besides the rest, the result has "output.I" and "delta.I" (N, C, H, W; Darknet's,
// which is where the values are to move; minus the slopes of the loss for [yolox]) for each head I,
// a layer's index; "loss", Darknet's cost or the loss of [yolox], added over heads; and gradients
// are those of a sum over images: what Darknet's updates add up to, with the opposite sign.
//
// Of a network with several ends, whose maps no layer reads, without "output_gradient" in `in`: the
// result is the map of each, "output.I" (N, C, H, W) of layer I, and nothing else.
//
// `in`, of which that of rank 0 counts: "input" (N, C, H, W), "output_gradient" (N, C, H, W of the
// last layer), and all parameters by parameter_name(). The result, on rank 0: "output",
// "input_gradient", the gradient of each learnt parameter under its own name, and running
// statistics after the pass. Dropout is off; a softmax gives its true Jacobian, a cost passes
// through. T is the scalar computed with. Throws AgreedError on all ranks where tensors lack or
// have other shapes. All ranks call this together.
template <class T>
[[nodiscard]] NamedTensors vector_jacobian_product(const VectorJacobianOptions& options,
                                                   const NamedTensors& in,
                                                   const Communicator& communicator);

}  // namespace tessera::engine
