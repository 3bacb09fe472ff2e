#include "engine/layers/kinds.h"
#include "engine/ops/pool/pool.h"

namespace tessera::engine {

namespace {

template <class T>
class ChannelPoolLayer : public Layer<T> {
 public:
  explicit ChannelPoolLayer(const Site& site)
      : site_(site),
        channels_{0, site.input_shape().channels},
        outputs_(std::get<partitioner::ChannelPool>(site.spec().operation).outputs) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    channel_pool_forward<T>(
        outputs_, channels_, views.inputs[0], part.region, {views.output, views.argmax});
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      channel_pool_backward<T>(outputs_,
                               views.output_gradient,
                               views.argmax,
                               site_.tile().backward,
                               views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  Range channels_;
  Index outputs_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_channel_pool(const Site& site) {
  return std::make_unique<ChannelPoolLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_channel_pool(const Site&);
template std::unique_ptr<Layer<double>> make_channel_pool(const Site&);

}  // namespace tessera::engine
