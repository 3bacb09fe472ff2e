#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class ReorgLayer : public Layer<T> {
 public:
  explicit ReorgLayer(const Site& site)
      : site_(site), reorg_(std::get<partitioner::Reorg>(site.spec().operation)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    reorg_forward(reorg_,
                  site_.input_shape(),
                  views.inputs[0],
                  site_.spec().output,
                  part.region,
                  views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      reorg_backward(reorg_,
                     site_.input_shape(),
                     View<const T>(views.output_gradient),
                     site_.spec().output,
                     site_.tile().backward,
                     views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  partitioner::Reorg reorg_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_reorg(const Site& site) {
  return std::make_unique<ReorgLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_reorg(const Site&);
template std::unique_ptr<Layer<double>> make_reorg(const Site&);

}  // namespace tessera::engine
