#include "engine/layers/layer.h"

#include "engine/layers/kinds.h"

namespace tessera::engine {

namespace {

template <class T>
struct Make {
  const Site& site;
  auto operator()(const partitioner::Convolution&) const { return make_convolutional<T>(site); }
  auto operator()(const partitioner::Deconvolution&) const { return make_deconvolutional<T>(site); }
  auto operator()(const partitioner::MaxPool&) const { return make_max_pool<T>(site); }
  auto operator()(const partitioner::ChannelPool&) const { return make_channel_pool<T>(site); }
  auto operator()(const partitioner::AvgPool&) const { return make_average_pool<T>(site); }
  auto operator()(const partitioner::Connected&) const { return make_connected<T>(site); }
  auto operator()(const partitioner::Local&) const { return make_local<T>(site); }
  auto operator()(const partitioner::Dropout&) const { return make_dropout<T>(site); }
  auto operator()(const partitioner::Softmax&) const { return make_softmax<T>(site); }
  auto operator()(const partitioner::Cost&) const { return make_cost<T>(site); }
  auto operator()(const partitioner::Shortcut&) const { return make_shortcut<T>(site); }
  auto operator()(const partitioner::Sam&) const { return make_product<T>(site); }
  auto operator()(const partitioner::ScaleChannels&) const { return make_product<T>(site); }
  auto operator()(const partitioner::Route&) const { return make_route<T>(site); }
  auto operator()(const partitioner::Upsample&) const { return make_upsample<T>(site); }
  auto operator()(const partitioner::Reorg&) const { return make_reorg<T>(site); }
  auto operator()(const partitioner::SpaceToDepth&) const { return make_space_to_depth<T>(site); }
  auto operator()(const partitioner::ChannelShuffle&) const {
    return make_channel_shuffle<T>(site);
  }
  auto operator()(const partitioner::Crop&) const { return make_crop<T>(site); }
  auto operator()(const partitioner::YoloHead&) const { return make_detector_head<T>(site); }
  auto operator()(const partitioner::RegionHead&) const { return make_detector_head<T>(site); }
  auto operator()(const partitioner::YoloxHead&) const { return make_detector_head<T>(site); }
  auto operator()(const partitioner::GridHead&) const { return make_detector_head<T>(site); }
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_layer(const Site& site) {
  return std::visit(Make<T>{site}, site.spec().operation);
}

template std::unique_ptr<Layer<float>> make_layer(const Site&);
template std::unique_ptr<Layer<double>> make_layer(const Site&);

}  // namespace tessera::engine
