#include "engine/layers/kinds.h"
#include "engine/ops/pool/pool.h"

namespace tessera::engine {

namespace {

template <class T>
class AveragePoolLayer : public Layer<T> {
 public:
  explicit AveragePoolLayer(const Site& site) : site_(site), map_(site.input_map()) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    average_pool_forward(views.inputs[0], map_, part.region, views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      average_pool_backward(View<const T>(views.output_gradient),
                            map_,
                            site_.tile().backward,
                            views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  Region map_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_average_pool(const Site& site) {
  return std::make_unique<AveragePoolLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_average_pool(const Site&);
template std::unique_ptr<Layer<double>> make_average_pool(const Site&);

}  // namespace tessera::engine
