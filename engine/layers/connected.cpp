#include "engine/ops/connected/connected.h"

#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"

namespace tessera::engine {

namespace {

template <class T>
class ConnectedLayer : public Layer<T> {
 public:
  explicit ConnectedLayer(const Site& site)
      : site_(site),
        normalized_(std::get<partitioner::Connected>(site.spec().operation).batch_normalize),
        stage_(
            site, normalized_, std::get<partitioner::Connected>(site.spec().operation).activation) {
  }

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    const T* bias = normalized_ ? nullptr : views.parameters.bias;
    connected_forward<T>(site_.input_shape(),
                         views.inputs[0],
                         views.parameters.weight,
                         bias,
                         views.forward_output(),
                         part.region);
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
    if (views.input_gradients[0].data != nullptr) {
      connected_backward_data(
          site_.input_shape(),
          stage_.pre_activation_gradients(views),
          Filters<T>{views.parameters.weight, site_.tile().computed.channels.begin},
          site_.tile().backward,
          InputGradient<T>{views.input_gradients[0], site_.input_map(), views.first_gradients[0]});
    }
  }

  void backward_weights(const LayerViews<T>& views, const Region& cells) override {
    connected_backward_weights(site_.input_shape(),
                               views.inputs[0],
                               stage_.pre_activation_gradients(views),
                               cells,
                               site_.tile().computed.channels.begin,
                               views.parameters.weight_gradient);
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }

 private:
  Site site_;
  bool normalized_;
  NormStage<T> stage_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_connected(const Site& site) {
  return std::make_unique<ConnectedLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_connected(const Site&);
template std::unique_ptr<Layer<double>> make_connected(const Site&);

}  // namespace tessera::engine
