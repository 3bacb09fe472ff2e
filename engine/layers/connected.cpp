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

  void forward(const Pass& pass, const LayerMaps<T>& maps) override {
    multiply(maps);
    stage_.forward(pass, maps);
  }

  void recompute(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    multiply(maps);
    stage_.recompute(maps);
  }

  void restore(const LayerMaps<T>& maps) override { stage_.restore(maps); }

  void backward_output(const Pass& pass, const LayerMaps<T>& maps) override {
    stage_.backward(pass, maps);
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    if (maps.input_gradients[0].data != nullptr) {
      connected_backward_data(
          site_.input_shape(),
          stage_.sum_gradients(maps),
          Filters<T>{maps.parameters.weight, site_.tile().computed.channels.begin},
          site_.tile().backward,
          InputGradient<T>{maps.input_gradients[0], site_.input_map(), maps.first_gradients});
    }
  }

  void backward_weights(const LayerMaps<T>& maps, const Region& cells) override {
    connected_backward_weights(site_.input_shape(),
                               maps.inputs[0],
                               stage_.sum_gradients(maps),
                               cells,
                               site_.tile().computed.channels.begin,
                               maps.parameters.weight_gradient);
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }
  [[nodiscard]] Index message_bytes() const override { return stage_.message_bytes(); }

 private:
  void multiply(const LayerMaps<T>& maps) const {
    const T* bias = normalized_ ? nullptr : maps.parameters.bias;
    connected_forward<T>(site_.input_shape(),
                         maps.inputs[0],
                         maps.parameters.weight,
                         bias,
                         stage_.sums(maps),
                         site_.tile().computed);
  }

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
