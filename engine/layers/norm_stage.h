// What follows the pre-activations of a convolutional or connected layer: normalisation, if it has
// one, activation, and the max-pool that is fused with them. What phases leave for each other is in
// the views that they are handed.

#pragma once

#include "engine/layers/layer.h"
#include "engine/ops/norm/fused_pool.h"

namespace tessera::engine {

template <class T>
class NormStage {
 public:
  NormStage(const Site& site, bool normalize, Activation activation)
      : site_(site), normalize_(normalize), activation_(activation) {}

  // The phases of a layer, see there.
  void begin_statistics(const LayerViews<T>& views) const;
  void statistics(const LayerViews<T>& views) const;
  void activate(const LayerViews<T>& views) const;
  void restore(const LayerViews<T>& views) const;
  // With a fused pool behind an activation, the gradient of the output becomes that of its argmax
  // cells, and of the pre-activations where these have a place.
  void backward_activation(const LayerViews<T>& views) const;
  // Adds to the gradients of shift and scale.
  void backward_normalize(const Pass& pass, const LayerViews<T>& views) const;
  // Then the gradient of the pre-activations, on tile().backward: in its place, or by calling
  // visit(gradient), which makes it out of the pre-activations.
  void normalize_gradient(const LayerViews<T>& views) const;
  template <class Visit>
  void with_pre_activation_gradients(const LayerViews<T>& views, Visit visit) const {
    const GradientLines<T> lines = output_gradients(views);
    visit(NormalizedGradient<T>(views.pre_activations,
                                site_.tile().backward,
                                backward_normalization(views),
                                through_statistics(views),
                                lines));
  }

  // Where the gradient of the pre-activations is then.
  [[nodiscard]] View<const T> pre_activation_gradients(const LayerViews<T>& views) const {
    return views.pre_activation_gradients.data != nullptr ? views.pre_activation_gradients
                                                          : views.output_gradient;
  }

  // The same by the argmax of that pool, without normalisation.
  [[nodiscard]] ArgmaxGradient<T> argmax_gradient(const LayerViews<T>& views) const {
    return {pool_site(&partitioner::Tile::backward),
            has_pool() ? views.output_gradient : pre_activation_gradients(views),
            views.argmax,
            has_pool() ? GradientOf::Windows : GradientOf::Cells};
  }

 private:
  void assign_norms(const LayerViews<T>& views) const;
  void backward_without_norm(const LayerViews<T>& views) const;
  [[nodiscard]] GradientLines<T> output_gradients(const LayerViews<T>& views) const;
  [[nodiscard]] PoolSite pool_site(Region partitioner::Tile::*region) const;
  [[nodiscard]] bool has_pool() const { return site_.fused_pool != partitioner::kNoLayer; }
  [[nodiscard]] double statistics_cells(const Pass& pass) const;
  [[nodiscard]] Normalization<T> normalization(const LayerViews<T>& views) const;
  // Whether backward_activation() brings the gradient of the output through the activation.
  [[nodiscard]] bool brings_through() const {
    return !has_pool() && partitioner::takes_exponential(activation_);
  }
  // What the gradients that it leaves go through.
  [[nodiscard]] Normalization<T> backward_normalization(const LayerViews<T>& views) const {
    Normalization<T> by = normalization(views);
    by.activation = brings_through() ? Activation::Linear : activation_;
    return by;
  }
  [[nodiscard]] StatisticsGradient through_statistics(const LayerViews<T>& views) const {
    return {views.norm->totals, views.norm->cells, site_.tile().owned};
  }

  Site site_;
  bool normalize_;
  Activation activation_;
};

}  // namespace tessera::engine
