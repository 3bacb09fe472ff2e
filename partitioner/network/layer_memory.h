// What a layer's backward pass wants to find in memory. The engine's layers and the planned memory
// both follow this.

#pragma once

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Whether the layer has weights: filters, or a matrix.
[[nodiscard]] bool has_weights(const Operation& operation);

// Whether outputs are normalised pre-activations.
[[nodiscard]] bool normalizes(const Operation& operation);

// Whether the slope of an activation can only be told from what it was applied to.
[[nodiscard]] constexpr bool slope_needs_input(Activation activation) {
  return activation == Activation::Swish || activation == Activation::Mish;
}

// Whether the pre-activations that the activation starts from are kept beside the output: the layer
// normalises them, or the slope of the activation cannot be told from the output.
[[nodiscard]] bool keeps_pre_activations(const Operation& operation);

// Whether the backward pass reads the values of the layer's inputs, or of its output.
[[nodiscard]] bool backward_reads_inputs(const Operation& operation);
[[nodiscard]] bool backward_reads_output(const Operation& operation);

}  // namespace tessera::partitioner
