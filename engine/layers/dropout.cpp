#include "engine/base/random.h"
#include "engine/layers/kinds.h"

namespace tessera::engine {

namespace {

// Whether a cell is dropped depends on its place in the step, not on who computes it; so nothing
// needs to be kept.
template <class T>
class DropoutLayer : public Layer<T> {
 public:
  explicit DropoutLayer(const Site& site)
      : site_(site),
        probability_(std::get<partitioner::Dropout>(site.spec().operation).probability) {}

  void forward(const Pass& pass, const LayerViews<T>& views, const TilePart& part) override {
    for_each_cell(part.region, [&](Index n, Index c, Index row, Index col) {
      views.output.at(n, c, row, col) =
          views.inputs[0].at(n, c, row, col) * factor(pass, n, c, row, col);
    });
  }

  void backward_data(const Pass& pass, const LayerViews<T>& views) override {
    if (views.input_gradients[0].data == nullptr) {
      return;
    }
    for_each_cell(site_.tile().backward, [&](Index n, Index c, Index row, Index col) {
      views.input_gradients[0].at(n, c, row, col) +=
          views.output_gradient.at(n, c, row, col) * factor(pass, n, c, row, col);
    });
  }

 private:
  [[nodiscard]] T factor(const Pass& pass, Index n, Index c, Index row, Index col) const {
    if (!pass.training || !pass.dropout || site_.spec().frozen) {
      return T(1);
    }
    const partitioner::MapShape& shape = site_.spec().output;
    const Index cell = (c * shape.rows + row) * shape.cols + col;
    const auto image = static_cast<std::uint64_t>(pass.first_image + n);
    const auto place = static_cast<std::uint64_t>(site_.layer) << 32U | image;
    const double drawn = random_uniform(
        pass.seed, static_cast<std::uint64_t>(pass.step), place, static_cast<std::uint64_t>(cell));
    return drawn < probability_ ? T(0) : static_cast<T>(1 / (1 - probability_));
  }

  template <class Visit>
  static void for_each_cell(const Region& region, Visit visit) {
    for (Index n = region.images.begin; n < region.images.end; ++n) {
      for (Index c = region.channels.begin; c < region.channels.end; ++c) {
        for (Index row = region.rows.begin; row < region.rows.end; ++row) {
          for (Index col = region.cols.begin; col < region.cols.end; ++col) {
            visit(n, c, row, col);
          }
        }
      }
    }
  }

  Site site_;
  double probability_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_dropout(const Site& site) {
  return std::make_unique<DropoutLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_dropout(const Site&);
template std::unique_ptr<Layer<double>> make_dropout(const Site&);

}  // namespace tessera::engine
