#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class SpaceToDepthLayer : public Layer<T> {
 public:
  explicit SpaceToDepthLayer(const Site& site)
      : site_(site), stride_(std::get<partitioner::SpaceToDepth>(site.spec().operation).stride) {}

  void forward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    space_to_depth_forward(
        stride_, site_.input_shape().channels, maps.inputs[0], site_.tile().computed, maps.output);
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    if (maps.input_gradients[0].data != nullptr) {
      space_to_depth_backward(stride_,
                              site_.input_shape().channels,
                              View<const T>(maps.output_gradient),
                              site_.tile().backward,
                              maps.input_gradients[0]);
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
