// What a layer's backward pass wants to find in memory. The engine's layers and the planned memory
// both follow this.

#pragma once

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Whether the layer has weights: filters, or a matrix.
[[nodiscard]] bool has_weights(const Operation& operation);

// Whether it has some that change in training.
[[nodiscard]] bool learns(const LayerSpec& layer);

// Whether outputs are normalised pre-activations.
[[nodiscard]] bool normalizes(const Operation& operation);

// Whether that is by statistics of the batch.
[[nodiscard]] bool takes_batch_statistics(const LayerSpec& layer);

// Whether the slope of an activation can only be told from what it was applied to.
[[nodiscard]] constexpr bool slope_needs_input(Activation activation) {
  return activation == Activation::Swish || activation == Activation::Mish;
}

// Whether the pre-activations that the activation starts from stand beside the output, and are kept
// where there is a backward pass: the layer normalises them, or the slope of the activation cannot
// be told from the output.
[[nodiscard]] bool keeps_pre_activations(const Operation& operation);

// Whether the layer has a backward pass that reads the values of its inputs, or of its output.
[[nodiscard]] bool backward_reads_inputs(const LayerSpec& layer);
[[nodiscard]] bool backward_reads_output(const LayerSpec& layer);

}  // namespace tessera::partitioner
