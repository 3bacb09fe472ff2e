#include "engine/ops/product/product.h"

#include "engine/layers/first_gradients.h"
#include "engine/layers/kinds.h"
#include "engine/ops/activation/activation.h"

namespace tessera::engine {

namespace {

// Two maps multiplied: value by value, or each channel or each place of one by a value of the
// other.
template <class T>
class ProductLayer : public Layer<T> {
 public:
  explicit ProductLayer(const Site& site)
      : site_(site),
        assigns_(inputs_differ(site)),
        activation_(activation_of(site.spec().operation)) {
    if (const auto* scale = std::get_if<partitioner::ScaleChannels>(&site.spec().operation)) {
      factors_ = scale->by_place ? Factors::ByPlace : Factors::ByChannel;
    }
  }

  void forward(const Pass& /*pass*/, const LayerViews<T>& views, const TilePart& part) override {
    if (part.region.empty()) {
      return;
    }
    const View<T> products = views.forward_output();
    multiply_forward(factors_, views.inputs[1], views.inputs[0], part.region, products);
    if (views.output.data != nullptr) {
      activate_forward(activation_, View<const T>(products), part.region, views.output);
    }
  }

  void backward_data(const Pass& /*pass*/, const LayerViews<T>& views) override {
    const Region& region = site_.tile().backward;
    if (!region.empty() && activation_ != partitioner::Activation::Linear) {
      activate_backward(activation_,
                        View<const T>(views.forward_output()),
                        View<const T>(views.output),
                        region,
                        views.output_gradient);
    }
    const View<const T> gradient = views.output_gradient;
    if (views.input_gradients[1].data != nullptr) {
      multiply_backward_map(factors_,
                            gradient,
                            views.inputs[0],
                            region,
                            views.input_gradients[1],
                            assigns_ && assigns_gradient(site_, views, 1, region));
    }
    if (views.input_gradients[0].data != nullptr) {
      if (assigns_) {
        begin_gradient(site_, views, 0);
      }
      multiply_backward_factors(
          factors_, gradient, views.inputs[1], region, views.input_gradients[0]);
    }
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return assigns_; }

 private:
  Site site_;
  bool assigns_;
  partitioner::Activation activation_;
  Factors factors_ = Factors::ByValue;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_product(const Site& site) {
  return std::make_unique<ProductLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_product(const Site&);
template std::unique_ptr<Layer<double>> make_product(const Site&);

}  // namespace tessera::engine
