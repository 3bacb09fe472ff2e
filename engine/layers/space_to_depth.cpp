#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class SpaceToDepthLayer : public Layer<T> {
 public:
  explicit SpaceToDepthLayer(const Site& site)
      : site_(site), stride_(std::get<partitioner::SpaceToDepth>(site.spec().operation).stride) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    space_to_depth_forward(
        stride_, site_.input_shape().channels, views.inputs[0], part.region, views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      space_to_depth_backward(stride_,
                              site_.input_shape().channels,
                              View<const T>(views.output_gradient),
                              site_.tile().backward,
                              views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  Index stride_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_space_to_depth(const Site& site) {
  return std::make_unique<SpaceToDepthLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_space_to_depth(const Site&);
template std::unique_ptr<Layer<double>> make_space_to_depth(const Site&);

}  // namespace tessera::engine
