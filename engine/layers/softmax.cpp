#include "engine/ops/activation/softmax.h"

#include <algorithm>

#include "engine/layers/kinds.h"

namespace tessera::engine {

namespace {

template <class T>
class SoftmaxLayer : public Layer<T> {
 public:
  explicit SoftmaxLayer(const Site& site)
      : site_(site),
        softmax_(std::get<partitioner::Softmax>(site.spec().operation)),
        loss_(loss_of(*site.network, site.layer)) {}

  // A rank computes whole distributions: of all images, channels (or groups of them) and cells that
  // it has a part of.
  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    const Region& region = part.region;
    if (region.empty()) {
      return;
    }
    const Region whole = input(region);
    T* values = views.workspace;
    copy_out(views.inputs[0], whole, values);
    for_each_run(whole, [&](const SoftmaxRun& run, Index begin) {
      softmax_forward(run, static_cast<const T*>(values + begin), values + begin);
    });
    const View<const T> result{values, whole, 1};
    copy_region(result, region, views.output);
  }

  void backward_data(const Pass& pass, const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    if (region.empty() || views.input_gradients[0].data == nullptr) {
      return;
    }
    const bool judged = loss_ && pass.targets != nullptr;
    if (judged) {
      // Cross-entropy through softmax at once: no division by small numbers.
      add_loss_gradient(site_,
                        pass,
                        loss_->weight / softmax_.temperature,
                        View<const T>(views.output),
                        views.input_gradients[0]);
    }
    if (!judged || loss_->gets_gradient) {
      pass_back(views, region);
    }
  }

 private:
  void pass_back(const LayerViews<T>& views, const Region& region) const {
    const Region whole = input(region);
    T* values = views.workspace;
    T* gradient = values + whole.volume();
    T* result = gradient + whole.volume();
    copy_out(views.inputs[0], whole, values);
    std::fill_n(gradient, 2 * whole.volume(), T{});
    copy_region(View<const T>(views.output_gradient), region, View<T>{gradient, whole, 1});
    for_each_run(whole, [&](const SoftmaxRun& run, Index begin) {
      softmax_forward(run, static_cast<const T*>(values + begin), values + begin);
      softmax_backward(run,
                       static_cast<const T*>(values + begin),
                       static_cast<const T*>(gradient + begin),
                       result + begin);
    });
    add_in(static_cast<const T*>(result), whole, views.input_gradients[0]);
  }

  [[nodiscard]] Region input(const Region& region) const {
    return region.empty() ? Region{}
                          : partitioner::required_input(*site_.network, site_.layer, 0, region);
  }

  // Calls visit(run, where it begins in the plain order of `whole`) for each distribution. Where
  // channels are no multiple of runs, `whole` begins or ends in the middle of a run that nobody
  // asks for.
  template <class Visit>
  void for_each_run(const Region& whole, Visit visit) const {
    const Index cells = whole.rows.size() * whole.cols.size();
    const Index image = whole.channels.size() * cells;
    for (Index n = 0; n < whole.images.size(); ++n) {
      if (softmax_.spatial) {
        for (Index cell = 0; cell < cells; ++cell) {
          visit({whole.channels.size(), cells, softmax_.temperature}, n * image + cell);
        }
        continue;
      }
      const Index size = site_.spec().output.volume() / softmax_.groups;
      const Index before =
          whole.channels.begin * cells % size;  // of the run that `whole` begins in
      for (Index begin = before == 0 ? 0 : size - before; begin + size <= image; begin += size) {
        visit({size, 1, softmax_.temperature}, n * image + begin);
      }
    }
  }

  static void copy_region(View<const T> from, const Region& region, View<T> to) {
    for (Index n = region.images.begin; n < region.images.end; ++n) {
      for (Index c = region.channels.begin; c < region.channels.end; ++c) {
        for (Index row = region.rows.begin; row < region.rows.end; ++row) {
          for (Index col = region.cols.begin; col < region.cols.end; ++col) {
            to.at(n, c, row, col) = from.at(n, c, row, col);
          }
        }
      }
    }
  }

  Site site_;
  partitioner::Softmax softmax_;
  std::optional<partitioner::Loss> loss_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_softmax(const Site& site) {
  return std::make_unique<SoftmaxLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_softmax(const Site&);
template std::unique_ptr<Layer<double>> make_softmax(const Site&);

}  // namespace tessera::engine
