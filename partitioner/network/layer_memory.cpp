#include "partitioner/network/layer_memory.h"

namespace tessera::partitioner {

namespace {

// The activation that a layer applies to pre-activations of its own.
Activation activation_of(const Operation& operation) {
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    return convolution->activation;
  }
  if (const auto* connected = std::get_if<Connected>(&operation)) {
    return connected->activation;
  }
  const auto* shortcut = std::get_if<Shortcut>(&operation);
  return shortcut != nullptr ? shortcut->activation : Activation::Linear;
}

}  // namespace

bool has_weights(const Operation& operation) {
  return std::holds_alternative<Convolution>(operation) ||
         std::holds_alternative<Connected>(operation);
}

bool learns(const LayerSpec& layer) {
  return has_weights(layer.operation) && !layer.frozen;
}

bool normalizes(const Operation& operation) {
  const auto* convolution = std::get_if<Convolution>(&operation);
  const auto* connected = std::get_if<Connected>(&operation);
  return (convolution != nullptr && convolution->batch_normalize) ||
         (connected != nullptr && connected->batch_normalize);
}

bool takes_batch_statistics(const LayerSpec& layer) {
  return normalizes(layer.operation) && !layer.frozen;
}

bool keeps_pre_activations(const Operation& operation) {
  return normalizes(operation) || slope_needs_input(activation_of(operation));
}

bool backward_reads_inputs(const LayerSpec& layer) {
  const Operation& operation = layer.operation;
  return layer.has_backward &&
         (has_weights(operation) || std::holds_alternative<Softmax>(operation));
}

bool backward_reads_output(const LayerSpec& layer) {
  const Operation& operation = layer.operation;
  return layer.has_backward &&
         (std::holds_alternative<Softmax>(operation) || std::holds_alternative<Cost>(operation) ||
          (!normalizes(operation) && activation_of(operation) != Activation::Linear));
}

}  // namespace tessera::partitioner
