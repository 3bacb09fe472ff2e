#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class ChannelShuffleLayer : public Layer<T> {
 public:
  explicit ChannelShuffleLayer(const Site& site)
      : site_(site), groups_(std::get<partitioner::ChannelShuffle>(site.spec().operation).groups) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    shuffle_channels_forward(
        groups_, site_.input_shape().channels, views.inputs[0], part.region, views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      shuffle_channels_backward(groups_,
                                site_.input_shape().channels,
                                View<const T>(views.output_gradient),
                                site_.tile().backward,
                                views.input_gradients[0]);
    }
  }

 private:
  Site site_;
  Index groups_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_channel_shuffle(const Site& site) {
  return std::make_unique<ChannelShuffleLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_channel_shuffle(const Site&);
template std::unique_ptr<Layer<double>> make_channel_shuffle(const Site&);

}  // namespace tessera::engine
