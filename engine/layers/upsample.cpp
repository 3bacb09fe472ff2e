#include "engine/layers/first_gradients.h"
#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class UpsampleLayer : public Layer<T> {
 public:
  explicit UpsampleLayer(const Site& site)
      : site_(site),
        upsample_(std::get<partitioner::Upsample>(site.spec().operation)),
        cells_{0, 1, upsample_.stride, 1},
        factor_(static_cast<T>(upsample_.scale)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    if (upsample_.bilinear) {
      interpolate_forward(grid(), factor_, views.inputs[0], part.region, views.output);
    } else {
      copy_cells(cells_, factor_, false, views.inputs[0], part.region, views.output);
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      const Region& region = site_.tile().backward;
      if (upsample_.bilinear) {
        begin_gradient(site_, views, 0);
        interpolate_backward(grid(),
                             factor_,
                             View<const T>(views.output_gradient),
                             region,
                             required_input(*site_.network, site_.layer, 0, region),
                             views.input_gradients[0]);
        return;
      }
      const auto source = [&](const Range& outs) {
        return Range{outs.begin / cells_.repeat, (outs.end + cells_.repeat - 1) / cells_.repeat};
      };
      const Region sources{
          region.images, region.channels, source(region.rows), source(region.cols)};
      copy_cells_backward(cells_,
                          factor_,
                          View<const T>(views.output_gradient),
                          region,
                          views.input_gradients[0],
                          assigns_gradient(site_, views, 0, sources));
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }

 private:
  [[nodiscard]] FinerGrid grid() const {
    return {upsample_.stride, site_.input_shape().rows, site_.input_shape().cols};
  }

  Site site_;
  partitioner::Upsample upsample_;
  CellMap cells_;
  T factor_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_upsample(const Site& site) {
  return std::make_unique<UpsampleLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_upsample(const Site&);
template std::unique_ptr<Layer<double>> make_upsample(const Site&);

}  // namespace tessera::engine
