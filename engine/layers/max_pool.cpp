#include "engine/layers/kinds.h"
#include "engine/ops/pool/pool.h"

namespace tessera::engine {

namespace {

template <class T>
class MaxPoolLayer : public Layer<T> {
 public:
  explicit MaxPoolLayer(const Site& site)
      : site_(site), pool_(std::get<partitioner::MaxPool>(site.spec().operation)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    if (!site_.is_fused) {
      max_pool_forward<T>(
          {pool_, site_.input_map(), part.region}, views.inputs[0], {views.output, views.argmax});
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (!site_.is_fused && views.input_gradients[0].data != nullptr) {
      max_pool_backward<T>({pool_, site_.input_map(), site_.tile().backward},
                           views.output_gradient,
                           views.argmax,
                           views.input_gradients[0]);
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

}  // namespace tessera::engine
