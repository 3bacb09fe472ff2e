#include "engine/detection/head.h"
#include "engine/layers/kinds.h"

namespace tessera::engine {

namespace {

// A cell is computed and owned with all of its channels.
template <class T>
class DetectorHeadLayer : public Layer<T> {
 public:
  explicit DetectorHeadLayer(const Site& site)
      : site_(site), head_(head_site(*site.network, site.layer)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    if (!part.region.empty()) {
      head_forward(head_, views.inputs[0], part.region, views.output);
    }
  }

  void backward_data(const Pass& pass, const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    if (region.empty() || views.input_gradients[0].data == nullptr) {
      return;
    }
    const View<const T> output = views.output;
    if (pass.targets != nullptr) {
      add_head_gradient(site_, pass, views.assigned, output, views.input_gradients[0]);
    } else {
      head_backward(
          head_, output, View<const T>(views.output_gradient), region, views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  HeadSite head_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_detector_head(const Site& site) {
  return std::make_unique<DetectorHeadLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_detector_head(const Site&);
template std::unique_ptr<Layer<double>> make_detector_head(const Site&);

}  // namespace tessera::engine
