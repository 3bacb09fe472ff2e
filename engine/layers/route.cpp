#include "engine/layers/first_gradients.h"
#include "engine/layers/kinds.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

template <class T>
class RouteLayer : public Layer<T> {
 public:
  explicit RouteLayer(const Site& site) : site_(site), assigns_(inputs_differ(site)) {
    const auto& route = std::get<partitioner::Route>(site.spec().operation);
    Index begin = 0;
    for (std::size_t i = 0; i < site.spec().inputs.size(); ++i) {
      const Index channels = site.input_shape(i).channels / route.groups;
      slices_.push_back({{begin, begin + channels}, channels * route.group - begin});
      begin += channels;
    }
  }

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const Region cells = part_of(part.region, i);
      if (!cells.empty()) {
        copy_cells({slices_[i].shift}, T(1), false, views.inputs[i], cells, views.output);
      }
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    for (std::size_t i = 0; i < slices_.size(); ++i) {
      const Region cells = part_of(site_.tile().backward, i);
      if (views.input_gradients[i].data != nullptr) {
        const Index shift = slices_[i].shift;
        Region sources = cells;
        sources.channels = {cells.channels.begin + shift, cells.channels.end + shift};
        const bool assign = assigns_ && assigns_gradient(site_, views, i, sources);
        copy_cells_backward({shift},
                            T(1),
                            View<const T>(views.output_gradient),
                            cells,
                            views.input_gradients[i],
                            assign);
      }
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return assigns_; }

 private:
  struct Slice {
    Range channels;   // of the output
    Index shift = 0;  // from them to the input's
  };

  [[nodiscard]] Region part_of(Region region, std::size_t input) const {
    region.channels = intersect(region.channels, slices_[input].channels);
    return region;
  }

  Site site_;
  bool assigns_;
  std::vector<Slice> slices_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_route(const Site& site) {
  return std::make_unique<RouteLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_route(const Site&);
template std::unique_ptr<Layer<double>> make_route(const Site&);

}  // namespace tessera::engine
