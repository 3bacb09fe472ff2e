// What is known of each kind of layer, a row per kind. What the shape of its map is and which
// region of its inputs it requires depends on numbers of the layer: these are an overload per kind
// in network.cpp and required_input.cpp.
//
// The engine's layers and the planned memory both follow what is said of the backward pass.

#pragma once

#include <cstddef>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

// Which of a device's rates say how long a layer takes.
enum class RatedAs { Convolution, Product, Pool, Elementwise };

// What computing a slice of a layer's output channels takes.
enum class ChannelSlice {
  SameChannels,  // those channels of its input
  MoreChannels,  // others, too, but no more than its share of the work
  AllChannels,   // most of the work of all channels
};

// What a layer makes of targets where it is a loss, see losses.h.
enum class LossForm { None, CrossEntropy, SquaredError, Boxes };

struct LayerTraits {
  const char* name = "";     // of the section that makes such a layer
  std::size_t inputs = 1;    // how many
  bool more_inputs = false;  // or more than that
  bool has_weights = false;  // filters, or a matrix
  RatedAs rated_as = RatedAs::Elementwise;
  ChannelSlice channel_slice = ChannelSlice::MoreChannels;
  // Reads all of an image, whatever part of its output is asked for.
  bool reads_whole_map = false;
  // The output is the input, but for what a dropout does in training.
  bool passes_input_on = false;
  // For the backward pass: which cell of each window was the largest.
  bool keeps_argmax = false;
  // The backward pass reads the values of the inputs; of the output, besides what the slope of an
  // activation takes.
  bool backward_reads_inputs = false;
  bool backward_reads_output = false;
  LossForm loss = LossForm::None;
};

[[nodiscard]] const LayerTraits& layer_traits(const Operation& operation);

// The activation that a layer applies to pre-activations of its own.
[[nodiscard]] Activation activation_of(const Operation& operation);

// Whether the layer has weights, and some that change in training.
[[nodiscard]] inline bool has_weights(const Operation& operation) {
  return layer_traits(operation).has_weights;
}
[[nodiscard]] inline bool learns(const LayerSpec& layer) {
  return has_weights(layer.operation) && !layer.frozen;
}

// Whether the layer says boxes, and ends its branch of the network: see heads.h.
[[nodiscard]] inline bool is_head(const Operation& operation) {
  return layer_traits(operation).loss == LossForm::Boxes;
}

// Whether outputs are normalised pre-activations, and whether by statistics of the batch.
[[nodiscard]] bool normalizes(const Operation& operation);
[[nodiscard]] inline bool takes_batch_statistics(const LayerSpec& layer) {
  return normalizes(layer.operation) && !layer.frozen;
}

// Whether the slope of an activation can only be told from what it was applied to.
[[nodiscard]] constexpr bool slope_needs_input(Activation activation) {
  return activation == Activation::Swish || activation == Activation::Mish ||
         activation == Activation::HardMish || activation == Activation::Gelu ||
         activation == Activation::HardSwish;
}

// Whether a value, and a slope that needs its input, takes an exponential.
[[nodiscard]] constexpr bool takes_exponential(Activation activation) {
  return activation == Activation::Elu || activation == Activation::Logistic ||
         activation == Activation::Tanh || activation == Activation::Swish ||
         activation == Activation::Mish || activation == Activation::Gelu;
}

// Whether the pre-activations that the activation starts from stand beside the output, and are kept
// where there is a backward pass: the layer normalises them, or the slope of the activation cannot
// be told from the output.
[[nodiscard]] bool keeps_pre_activations(const Operation& operation);

// Whether the layer has a backward pass that reads the values of its inputs, or of its output: the
// row says so, or the slope of the activation is told from them.
[[nodiscard]] bool backward_reads_inputs(const LayerSpec& layer);
[[nodiscard]] bool backward_reads_output(const LayerSpec& layer);

}  // namespace tessera::partitioner
