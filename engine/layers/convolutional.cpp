#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"
#include "engine/layers/workspace.h"

namespace engine {

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

  void forward(const Pass& pass, const LayerMaps<T>& maps) override {
    const T* bias = normalized_ ? nullptr : maps.parameters.bias;
    auto moments = stage_.line_moments(pass, maps);
    ConvolutionOutput<T> out{stage_.sums(maps), site_.tile().computed};
    if (moments) {
      out.done = [&](const Range& channels, Index n, Index row) { moments->add(channels, n, row); };
    }
    convolution_forward(method_,
                        maps.inputs[0],
                        static_cast<const T*>(maps.parameters.weight),
                        bias,
                        out,
                        maps.workspace);
    stage_.forward(pass, maps, moments);
  }

  void restore(const LayerMaps<T>& maps) override { stage_.restore(maps); }

  void backward_output(const Pass& pass, const LayerMaps<T>& maps) override {
    stage_.backward(pass, maps);
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    const Region& region = site_.tile().backward;
    const Index first = site_.tile().computed.channels.begin;
    const View<const T> gradient = stage_.sum_gradients(maps);
    convolution_backward_weights(method_,
                                 maps.inputs[0],
                                 gradient,
                                 region,
                                 first,
                                 maps.parameters.weight_gradient,
                                 maps.workspace);
    if (maps.input_gradients[0].data != nullptr) {
      convolution_backward_data(
          method_,
          gradient,
          Filters<T>{maps.parameters.weight, first},
          region,
          InputGradient<T>{maps.input_gradients[0], site_.input_map(), maps.first_gradients},
          maps.workspace);
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }
  [[nodiscard]] Index message_bytes() const override { return stage_.message_bytes(); }

 private:
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

}  // namespace engine
