// What follows the sums of a convolutional or connected layer: normalisation, if it has one, and
// activation.

#pragma once

#include <optional>

#include "engine/comm/channel_sums.h"
#include "engine/layers/layer.h"
#include "engine/ops/batch_norm.h"

namespace engine {

template <class T>
class NormStage {
 public:
  NormStage(const Site& site, bool normalize, Activation activation);

  // The view that the layer's sums go to: the output itself where the backward pass can do without
  // them.
  [[nodiscard]] View<T> sums(View<T> output) { return keeps_sums() ? sums_.view() : output; }

  // Turns sums into the output, on tile().computed.
  void forward(const Pass& pass, const LayerMaps<T>& maps);

  // Turns the gradient of the output into that of the sums, in place, on tile().backward. Adds to
  // the gradients of bias (shift) and scale.
  void backward(const Pass& pass, const LayerMaps<T>& maps);

  [[nodiscard]] bool keeps_sums() const { return normalize_ || slope_needs_input(activation_); }
  [[nodiscard]] Index kept_bytes() const { return sums_.bytes(); }
  [[nodiscard]] Index message_bytes() const;

 private:
  void update_statistics(const Pass& pass, const LayerMaps<T>& maps);
  std::vector<Moments> moments(const Pass& pass);
  [[nodiscard]] double statistics_cells(const Pass& pass) const;
  [[nodiscard]] Normalization<T> normalization(const LayerMaps<T>& maps) const;

  Site site_;
  bool normalize_;
  Activation activation_;
  Tensor<T> sums_;
  std::vector<ChannelNorm<T>> norms_;  // of the channels of tile().computed
  std::optional<ChannelSums> moment_sums_;
  std::optional<ChannelSums> gradient_sums_;
};

}  // namespace engine
