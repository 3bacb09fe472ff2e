#include "engine/layers/kinds.h"
#include "engine/ops/pool.h"

namespace engine {

namespace {

template <class T>
class MaxPoolLayer : public Layer<T> {
 public:
  explicit MaxPoolLayer(const Site& site)
      : site_(site), pool_(std::get<partitioner::MaxPool>(site.spec().operation)) {}

  void forward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    max_pool_forward(pool_, maps.inputs[0], site_.input_map(), site_.tile().computed, maps.output);
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    if (maps.input_gradients[0].data != nullptr) {
      max_pool_backward(pool_,
                        maps.inputs[0],
                        View<const T>(maps.output),
                        site_.input_map(),
                        View<const T>(maps.output_gradient),
                        site_.tile().backward,
                        maps.input_gradients[0]);
    }
  }

 private:
  Site site_;
  partitioner::MaxPool pool_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_max_pool(const Site& site) {
  return std::make_unique<MaxPoolLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_max_pool(const Site&);
template std::unique_ptr<Layer<double>> make_max_pool(const Site&);

}  // namespace engine
