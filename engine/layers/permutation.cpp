#include "engine/layers/first_gradients.h"
#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

// A layer whose output has the numbers of its input in other places.
template <class Operation, class T>
class PermutationLayer : public Layer<T> {
 public:
  explicit PermutationLayer(const Site& site)
      : site_(site), operation_(std::get<Operation>(site.spec().operation)) {}

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    permute_forward(operation_, site_.input_shape(), views.inputs[0], part.region, views.output);
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data != nullptr) {
      const Region& region = site_.tile().backward;
      const Region sources = required_input(*site_.network, site_.layer, 0, region);
      // Where there are as many, the region has the gradients of all.
      const bool all = sources.volume() == region.volume();
      permute_backward(operation_,
                       site_.input_shape(),
                       View<const T>(views.output_gradient),
                       region,
                       views.input_gradients[0],
                       assigns_gradient(site_, views, 0, all ? sources : Region{}));
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }

 private:
  Site site_;
  Operation operation_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_reorg(const Site& site) {
  return std::make_unique<PermutationLayer<partitioner::Reorg, T>>(site);
}

template <class T>
std::unique_ptr<Layer<T>> make_space_to_depth(const Site& site) {
  return std::make_unique<PermutationLayer<partitioner::SpaceToDepth, T>>(site);
}

template <class T>
std::unique_ptr<Layer<T>> make_channel_shuffle(const Site& site) {
  return std::make_unique<PermutationLayer<partitioner::ChannelShuffle, T>>(site);
}

template std::unique_ptr<Layer<float>> make_reorg(const Site&);
template std::unique_ptr<Layer<double>> make_reorg(const Site&);
template std::unique_ptr<Layer<float>> make_space_to_depth(const Site&);
template std::unique_ptr<Layer<double>> make_space_to_depth(const Site&);
template std::unique_ptr<Layer<float>> make_channel_shuffle(const Site&);
template std::unique_ptr<Layer<double>> make_channel_shuffle(const Site&);

}  // namespace tessera::engine
