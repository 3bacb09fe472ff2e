#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class CropLayer : public Layer<T> {
 public:
  explicit CropLayer(const Site& site) : site_(site), same_{} {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    copy_cells(same_, T(1), false, views.inputs[0], part.region, views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      copy_cells_backward(same_,
                          T(1),
                          View<const T>(views.output_gradient),
                          site_.tile().backward,
                          views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  CellMap same_;  // the data stage has cut the window out
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_crop(const Site& site) {
  return std::make_unique<CropLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_crop(const Site&);
template std::unique_ptr<Layer<double>> make_crop(const Site&);

}  // namespace tessera::engine
