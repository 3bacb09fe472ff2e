#include "engine/ops/connected/local.h"

#include "engine/layers/kinds.h"
#include "engine/ops/activation/activation.h"

namespace tessera::engine {

namespace {

template <class T>
class LocalLayer : public Layer<T> {
 public:
  explicit LocalLayer(const Site& site)
      : site_(site),
        local_{std::get<partitioner::Local>(site.spec().operation),
               site.input_map(),
               site.spec().output,
               site.tile().computed.channels.begin} {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    local_forward<T>(local_,
                     views.inputs[0],
                     views.parameters.weight,
                     views.parameters.bias,
                     part.region,
                     views.forward_output());
  }

  void activate(const LayerViews<T>& views) override { restore(views); }

  void restore(const LayerViews<T>& views) override {
    const Region& computed = site_.tile().computed;
    if (!computed.empty()) {
      activate_forward(
          local_.layer.activation, View<const T>(views.forward_output()), computed, views.output);
    }
  }

  void backward_activation(const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    if (region.empty()) {
      return;
    }
    activate_backward(local_.layer.activation,
                      View<const T>(views.forward_output()),
                      View<const T>(views.output),
                      region,
                      views.output_gradient);
    local_backward_biases<T>(local_, views.output_gradient, region, views.parameters.bias_gradient);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      local_backward_data<T>(local_,
                             views.output_gradient,
                             views.parameters.weight,
                             site_.tile().backward,
                             views.input_gradients[0]);
    }
  }

  void backward_weights(const LayerViews<T>& views, const Region& cells) override {
    local_backward_weights<T>(
        local_, views.inputs[0], views.output_gradient, cells, views.parameters.weight_gradient);
  }

 private:
  Site site_;
  LocalSite local_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_local(const Site& site) {
  return std::make_unique<LocalLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_local(const Site&);
template std::unique_ptr<Layer<double>> make_local(const Site&);

}  // namespace tessera::engine
