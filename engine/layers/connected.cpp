#include "engine/ops/connected.h"

#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"

namespace engine {

namespace {

template <class T>
class ConnectedLayer : public Layer<T> {
 public:
  explicit ConnectedLayer(const Site& site)
      : site_(site),
        normalized_(std::get<partitioner::Connected>(site.spec().operation).batch_normalize),
        stage_(
            site, normalized_, std::get<partitioner::Connected>(site.spec().operation).activation) {
  }

  void forward(const Pass& pass, const LayerMaps<T>& maps) override {
    multiply(maps);
    stage_.forward(pass, maps);
  }

  void recompute(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    multiply(maps);
    stage_.recompute(maps);
  }

  void restore(const LayerMaps<T>& maps) override { stage_.restore(maps); }

  void backward_output(const Pass& pass, const LayerMaps<T>& maps) override {
    stage_.backward(pass, maps);
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    const Region& region = site_.tile().backward;
    if (region.empty() || maps.input_gradients[0].data == nullptr) {
      return;
    }
    const Features at = features(region, maps.workspace);
    copy_out(stage_.sum_gradients(maps), region, at.out);
    connected_backward_data(at.size,
                            static_cast<const T*>(at.out),
                            static_cast<const T*>(maps.parameters.weight + skipped(region)),
                            at.in);
    add_in(static_cast<const T*>(at.in), input(region), maps.input_gradients[0]);
  }

  void backward_weights(const LayerMaps<T>& maps) override {
    const Region& region = site_.tile().backward;
    if (region.empty()) {
      return;
    }
    const Features at = features(region, maps.workspace);
    copy_out(stage_.sum_gradients(maps), region, at.out);
    copy_out(maps.inputs[0], input(region), at.in);
    connected_backward_weights(at.size,
                               static_cast<const T*>(at.in),
                               static_cast<const T*>(at.out),
                               maps.parameters.weight_gradient + skipped(region));
  }

  [[nodiscard]] Index message_bytes() const override { return stage_.message_bytes(); }

 private:
  struct Features {
    ConnectedSize size;
    T* in;   // (N, C)
    T* out;  // (N, K)
  };

  void multiply(const LayerMaps<T>& maps) const {
    const Region& region = site_.tile().computed;
    if (region.empty()) {
      return;
    }
    const Features at = features(region, maps.workspace);
    copy_out(maps.inputs[0], input(region), at.in);
    connected_forward(at.size,
                      static_cast<const T*>(at.in),
                      static_cast<const T*>(maps.parameters.weight),
                      static_cast<const T*>(normalized_ ? nullptr : maps.parameters.bias),
                      at.out);
    copy_in(static_cast<const T*>(at.out), region, stage_.sums(maps));
  }

  [[nodiscard]] Features features(const Region& region, T* workspace) const {
    const ConnectedSize size{
        region.images.size(), site_.input_shape().volume(), region.channels.size()};
    return {size, workspace, workspace + size.images * size.inputs};
  }

  // Weights of channels that the tile has before those of `region`.
  [[nodiscard]] Index skipped(const Region& region) const {
    return (region.channels.begin - site_.tile().computed.channels.begin) *
           site_.input_shape().volume();
  }

  [[nodiscard]] Region input(const Region& region) const {
    return partitioner::required_input(*site_.network, site_.layer, 0, region);
  }

  Site site_;
  bool normalized_;
  NormStage<T> stage_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_connected(const Site& site) {
  return std::make_unique<ConnectedLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_connected(const Site&);
template std::unique_ptr<Layer<double>> make_connected(const Site&);

}  // namespace engine
