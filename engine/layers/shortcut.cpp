#include "engine/layers/first_gradients.h"
#include "engine/layers/kinds.h"
#include "engine/ops/activation/activation.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class ShortcutLayer : public Layer<T> {
 public:
  explicit ShortcutLayer(const Site& site)
      : site_(site), shortcut_(std::get<partitioner::Shortcut>(site.spec().operation)) {
    const partitioner::MapShape& source = site.input_shape(1);  // others are like the target
    const partitioner::MapShape& target = site.spec().output;
    cells_.sample = std::max<Index>(source.rows / target.rows, 1);
    cells_.every = cells_.repeat = std::max<Index>(target.rows / source.rows, 1);
    channels_ = {0, std::min(source.channels, target.channels)};
    const bool same_places = cells_.sample == 1 && cells_.repeat == 1;
    same_cells_ = same_places && shortcut_.alpha == 1 && source.channels == target.channels;
    assigns_ = same_places && inputs_differ(site);
  }

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    const Region& region = part.region;
    if (region.empty()) {
      return;
    }
    const View<T> pre_activations = views.forward_output();
    if (same_cells_) {
      const T beta = static_cast<T>(shortcut_.beta);
      add_cells(beta, views.inputs[0], views.inputs[1], region, pre_activations);
      for (std::size_t source = 2; source < views.inputs.size(); ++source) {
        add_cells(
            beta, View<const T>(pre_activations), views.inputs[source], region, pre_activations);
      }
    } else {
      add_parts(views, region, pre_activations);
    }
    if (views.output.data != nullptr) {
      activate_forward(shortcut_.activation, View<const T>(pre_activations), region, views.output);
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    const View<const T> gradient = views.output_gradient;
    if (!region.empty() && shortcut_.activation != partitioner::Activation::Linear) {
      activate_backward(shortcut_.activation,
                        View<const T>(views.forward_output()),
                        View<const T>(views.output),
                        region,
                        views.output_gradient);
    }
    const Region both = shared(region);
    for (std::size_t source = 1; source < views.input_gradients.size(); ++source) {
      if (views.input_gradients[source].data != nullptr) {
        copy_cells_backward(cells_,
                            static_cast<T>(shortcut_.beta),
                            gradient,
                            both,
                            views.input_gradients[source],
                            assigns_ && assigns_gradient(site_, views, source, both));
      }
    }
    if (views.input_gradients[0].data != nullptr) {
      if (!both.empty() && shortcut_.alpha != 1) {
        scale_cells(static_cast<T>(shortcut_.alpha), cells_.every, both, views.output_gradient);
      }
      copy_cells_backward({},
                          T(1),
                          gradient,
                          region,
                          views.input_gradients[0],
                          assigns_ && assigns_gradient(site_, views, 0, region));
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return assigns_; }

 private:
  // Of inputs that have other channels, or cells elsewhere, or a factor each.
  void add_parts(const LayerViews<T>& views, const Region& region, const View<T>& pre_activations) {
    copy_cells({}, T(1), false, views.inputs[0], region, pre_activations);
    const Region both = shared(region);
    if (!both.empty()) {
      if (shortcut_.alpha != 1) {
        scale_cells(static_cast<T>(shortcut_.alpha), cells_.every, both, pre_activations);
      }
      for (std::size_t source = 1; source < views.inputs.size(); ++source) {
        copy_cells(cells_,
                   static_cast<T>(shortcut_.beta),
                   true,
                   views.inputs[source],
                   both,
                   pre_activations);
      }
    }
  }

  // The part of a region of the output where the source has channels.
  [[nodiscard]] Region shared(Region region) const {
    region.channels = intersect(region.channels, channels_);
    return region;
  }

  Site site_;
  partitioner::Shortcut shortcut_;
  CellMap cells_;
  Range channels_;
  bool same_cells_ = false;
  bool assigns_ = false;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_shortcut(const Site& site) {
  return std::make_unique<ShortcutLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_shortcut(const Site&);
template std::unique_ptr<Layer<double>> make_shortcut(const Site&);

}  // namespace tessera::engine
