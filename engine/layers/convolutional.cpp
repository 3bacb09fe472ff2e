#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"
#include "engine/layers/workspace.h"

namespace tessera::engine {

namespace {

template <class T>
class ConvolutionalLayer : public Layer<T> {
 public:
  explicit ConvolutionalLayer(const Site& site)
      : site_(site),
        method_{convolution_shape(*site.network, site.layer), site.plan->kernels_of(site.layer)},
        normalized_(std::get<partitioner::Convolution>(site.spec().operation).batch_normalize),
        stage_(site,
               normalized_,
               std::get<partitioner::Convolution>(site.spec().operation).activation) {}

  bool prepare(const LayerViews<T>& views) override {
    return convolution_prepare<T>(
        method_, views.parameters.weight, site_.tile().computed.channels.size(), views.workspace);
  }

  void begin_statistics(const LayerViews<T>& views) override { stage_.begin_statistics(views); }

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    ConvolutionOutput<T> out{views.forward_output(), part.region};
    if (views.norm != nullptr && views.norm->lines && part.ends_lines) {
      out.done = [&lines = *views.norm->lines](const Range& channels, Index n, const Range& rows) {
        lines.add(channels, n, rows);
      };
    }
    const ForwardFilters<T> filters{views.parameters.weight,
                                    normalized_ ? nullptr : views.parameters.bias,
                                    views.has_prepared_filters};
    convolution_forward(method_, views.inputs[0], filters, out, views.workspace);
  }

  void statistics(const LayerViews<T>& views) override { stage_.statistics(views); }
  void activate(const LayerViews<T>& views) override { stage_.activate(views); }
  void restore(const LayerViews<T>& views) override { stage_.restore(views); }
  void backward_activation(const LayerViews<T>& views) override {
    stage_.backward_activation(views);
  }

  void backward_normalize(const Pass& pass, const LayerViews<T>& views) override {
    stage_.backward_normalize(pass, views);
    if (!weights_make_gradient(views)) {
      stage_.normalize_gradient(views);
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      convolution_backward_data(
          method_,
          stage_.pre_activation_gradients(views),
          Filters<T>{views.parameters.weight, site_.tile().computed.channels.begin},
          site_.tile().backward,
          InputGradient<T>{views.input_gradients[0], site_.input_map(), views.first_gradients[0]},
          views.workspace);
    }
  }

  void backward_weights(const LayerViews<T>& views, const Region& cells) override {
    if (weights_make_gradient(views)) {
      backward_weights_from_pre_activations(views, cells);
      return;
    }
    if (site_.argmax_pool != partitioner::kNoLayer) {
      convolution_backward_weights(
          method_, views.inputs[0], stage_.argmax_gradient(views), cells, weight_gradient(views));
      return;
    }
    convolution_backward_weights(method_,
                                 views.inputs[0],
                                 stage_.pre_activation_gradients(views),
                                 cells,
                                 weight_gradient(views),
                                 views.workspace);
  }

  [[nodiscard]] bool assigns_weight_gradient(const LayerViews<T>& views,
                                             const Region& cells) const override {
    return !weights_make_gradient(views) && site_.argmax_pool == partitioner::kNoLayer &&
           !cells.empty() && cells.channels == site_.tile().computed.channels &&
           assigns_all_weights<T>(
               method_, views.inputs[0], stage_.pre_activation_gradients(views), cells);
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }

 private:
  [[nodiscard]] WeightGradient<T> weight_gradient(const LayerViews<T>& views) const {
    return {views.parameters.weight_gradient,
            site_.tile().computed.channels.begin,
            views.first_weight_gradient};
  }

  // Whether the weights alone want the gradient of the pre-activations, so that it need not stand
  // in memory.
  [[nodiscard]] bool weights_make_gradient(const LayerViews<T>& views) const {
    return normalized_ && site_.spec().inputs[0] == partitioner::kImage &&
           views.input_gradients[0].data == nullptr &&
           takes_made_gradient<T>(
               method_, views.inputs[0], views.pre_activations, site_.tile().backward);
  }

  void backward_weights_from_pre_activations(const LayerViews<T>& views, const Region& cells) {
    stage_.with_pre_activation_gradients(views, [&](const NormalizedGradient<T>& gradient) {
      const auto make = [&](const Range& run, Index n, Index row, const Range& cols, T* to) {
        gradient.make(run, n, row, cols, to);
      };
      convolution_backward_weights<T>(method_,
                                      views.inputs[0],
                                      MadeGradient<T>{views.pre_activations, make},
                                      cells,
                                      weight_gradient(views));
    });
  }

  Site site_;
  ConvolutionMethod method_;
  bool normalized_;
  NormStage<T> stage_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_convolutional(const Site& site) {
  return std::make_unique<ConvolutionalLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_convolutional(const Site&);
template std::unique_ptr<Layer<double>> make_convolutional(const Site&);

}  // namespace tessera::engine
