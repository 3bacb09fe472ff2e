#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

// Passes its input on. Where it is a loss, the gradient is that of half the squared error.
template <class T>
class CostLayer : public Layer<T> {
 public:
  explicit CostLayer(const Site& site) : site_(site), loss_(loss_of(*site.network, site.layer)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    copy_cells({}, T(1), false, views.inputs[0], part.region, views.output);
  }

  void backward_data(const Pass& pass, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data == nullptr) {
      return;
    }
    const bool judged = loss_ && pass.targets != nullptr;
    if (judged) {
      add_loss_gradient(
          site_, pass, loss_->weight, View<const T>(views.output), views.input_gradients[0]);
    }
    if (!judged || loss_->gets_gradient) {
      copy_cells_backward({},
                          T(1),
                          View<const T>(views.output_gradient),
                          site_.tile().backward,
                          views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  std::optional<partitioner::Loss> loss_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_cost(const Site& site) {
  return std::make_unique<CostLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_cost(const Site&);
template std::unique_ptr<Layer<double>> make_cost(const Site&);

}  // namespace tessera::engine
