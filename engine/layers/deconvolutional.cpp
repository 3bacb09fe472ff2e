#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"
#include "engine/layers/workspace.h"
#include "engine/ops/convolution/deconvolution.h"

namespace tessera::engine {

namespace {

template <class T>
class DeconvolutionalLayer : public Layer<T> {
 public:
  explicit DeconvolutionalLayer(const Site& site)
      : site_(site),
        shape_(convolution_shape(*site.network, site.layer)),
        normalized_(normalizes(site.spec().operation)),
        stage_(site, normalized_, activation_of(site.spec().operation)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    const ForwardFilters<T> filters{views.parameters.weight,
                                    normalized_ ? nullptr : views.parameters.bias};
    deconvolution_forward<T>(shape_,
                             views.inputs[0],
                             cells_for(part.region),
                             filters,
                             ConvolutionOutput<T>{views.forward_output(), part.region},
                             views.workspace);
  }

  void statistics(const LayerViews<T>& views) override { stage_.statistics(views); }
  void activate(const LayerViews<T>& views) override { stage_.activate(views); }
  void restore(const LayerViews<T>& views) override { stage_.restore(views); }
  void backward_activation(const LayerViews<T>& views) override {
    stage_.backward_activation(views);
  }

  void backward_normalize(const Pass& pass, const LayerViews<T>& views) override {
    stage_.backward_normalize(pass, views);
    stage_.normalize_gradient(views);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    if (views.input_gradients[0].data != nullptr && !region.empty()) {
      deconvolution_backward_data<T>(shape_,
                                     stage_.pre_activation_gradients(views),
                                     region,
                                     views.parameters.weight + first_weight(region),
                                     views.input_gradients[0],
                                     cells_for(region),
                                     views.workspace);
    }
  }

  void backward_weights(const LayerViews<T>& views, const Region& cells) override {
    if (cells.empty()) {
      return;
    }
    deconvolution_backward_weights<T>(shape_,
                                      views.inputs[0],
                                      cells_for(cells),
                                      stage_.pre_activation_gradients(views),
                                      cells,
                                      views.parameters.weight_gradient + first_weight(cells),
                                      views.workspace);
  }

 private:
  [[nodiscard]] Region cells_for(const Region& output) const {
    return required_input(*site_.network, site_.layer, 0, output);
  }
  // Of the region's channels, among those of the tile.
  [[nodiscard]] Index first_weight(const Region& region) const {
    return (region.channels.begin - site_.tile().computed.channels.begin) * shape_.row();
  }

  Site site_;
  ConvolutionShape shape_;
  bool normalized_;
  NormStage<T> stage_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_deconvolutional(const Site& site) {
  return std::make_unique<DeconvolutionalLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_deconvolutional(const Site&);
template std::unique_ptr<Layer<double>> make_deconvolutional(const Site&);

}  // namespace tessera::engine
