#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

// Passes its input on. Where it is the loss itself, its gradient is that of half the squared error.
template <class T>
class CostLayer : public Layer<T> {
 public:
  explicit CostLayer(const Site& site)
      : site_(site),
        scale_(std::get<partitioner::Cost>(site.spec().operation).scale),
        is_loss_(loss_layer(*site.network) == site.layer) {}

  void forward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    copy_cells({}, T(1), false, maps.inputs[0], site_.tile().computed, maps.output);
  }

  void backward(const Pass& pass, const LayerMaps<T>& maps) override {
    if (maps.input_gradients[0].data == nullptr) {
      return;
    }
    if (is_loss_ && pass.labels != nullptr) {
      add_loss_gradient(site_, pass, scale_, View<const T>(maps.output), maps.input_gradients[0]);
    } else {
      copy_cells_backward({},
                          T(1),
                          View<const T>(maps.output_gradient),
                          site_.tile().backward,
                          maps.input_gradients[0]);
    }
  }

 private:
  Site site_;
  double scale_;
  bool is_loss_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_cost(const Site& site) {
  return std::make_unique<CostLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_cost(const Site&);
template std::unique_ptr<Layer<double>> make_cost(const Site&);

}  // namespace tessera::engine
