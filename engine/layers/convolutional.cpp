#include "engine/layers/kinds.h"
#include "engine/layers/norm_stage.h"
#include "engine/layers/workspace.h"
#include "partitioner/plan/forward_parts.h"

namespace tessera::engine {

namespace {

using partitioner::TilePart;

template <class T>
class ConvolutionalLayer : public Layer<T> {
 public:
  explicit ConvolutionalLayer(const Site& site)
      : site_(site),
        method_{convolution_shape(*site.network, site.layer), site.plan->kernels_of(site.layer)},
        normalized_(std::get<partitioner::Convolution>(site.spec().operation).batch_normalize),
        stage_(site,
               normalized_,
               std::get<partitioner::Convolution>(site.spec().operation).activation) {}

  void forward(const Pass& pass, const LayerMaps<T>& maps) override {
    auto moments = stage_.line_moments(pass, maps);
    const LineDone line_done = [&](const Range& channels, Index n, Index row) {
      moments->add(channels, n, row);
    };
    const bool prepared =
        !maps.parts.empty() &&
        convolution_prepare<T>(
            method_, maps.parameters.weight, site_.tile().computed.channels.size(), maps.workspace);
    const auto compute = [&](const TilePart& part) {
      ConvolutionOutput<T> out{stage_.sums(maps), part.region};
      if (moments && part.ends_lines) {
        out.done = line_done;
      }
      convolve(maps, out, prepared);
    };
    for (const TilePart& part : maps.parts) {
      maps.await_inputs(part.awaits);
      compute(part);
    }
    if (maps.parts.empty()) {
      compute({site_.tile().computed});
    }
    stage_.forward(pass, maps, moments);
  }

  void recompute(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    convolve(maps, {stage_.sums(maps), site_.tile().computed}, false);
    stage_.recompute(maps);
  }

  void restore(const LayerMaps<T>& maps) override { stage_.restore(maps); }

  void backward_output(const Pass& pass, const LayerMaps<T>& maps) override {
    if (weights_make_gradient(maps)) {
      stage_.backward_statistics(pass, maps);
    } else {
      stage_.backward(pass, maps);
    }
  }

  void backward(const Pass& /*pass*/, const LayerMaps<T>& maps) override {
    if (maps.input_gradients[0].data != nullptr) {
      convolution_backward_data(
          method_,
          stage_.sum_gradients(maps),
          Filters<T>{maps.parameters.weight, site_.tile().computed.channels.begin},
          site_.tile().backward,
          InputGradient<T>{maps.input_gradients[0], site_.input_map(), maps.first_gradients},
          maps.workspace);
    }
  }

  void backward_weights(const LayerMaps<T>& maps, const Region& cells) override {
    if (weights_make_gradient(maps)) {
      backward_weights_from_sums(maps, cells);
      return;
    }
    if (site_.winning_pool != partitioner::kNoLayer) {
      convolution_backward_weights(method_,
                                   maps.inputs[0],
                                   stage_.won_gradient(maps),
                                   cells,
                                   site_.tile().computed.channels.begin,
                                   maps.parameters.weight_gradient);
      return;
    }
    convolution_backward_weights(method_,
                                 maps.inputs[0],
                                 stage_.sum_gradients(maps),
                                 cells,
                                 site_.tile().computed.channels.begin,
                                 maps.parameters.weight_gradient,
                                 maps.workspace);
  }

  [[nodiscard]] bool assigns_input_gradients() const override { return true; }
  [[nodiscard]] Index message_bytes() const override { return stage_.message_bytes(); }

 private:
  // Whether the weights alone want the gradient of the sums, so that it need not stand in memory.
  [[nodiscard]] bool weights_make_gradient(const LayerMaps<T>& maps) const {
    return normalized_ && site_.spec().inputs[0] == partitioner::kImage &&
           maps.input_gradients[0].data == nullptr &&
           takes_made_gradient<T>(method_, maps.inputs[0], maps.sums, site_.tile().backward);
  }

  void backward_weights_from_sums(const LayerMaps<T>& maps, const Region& cells) {
    stage_.with_sum_gradients(maps, [&](const NormalizedGradient<T>& gradient) {
      const auto make = [&](const Range& run, Index n, Index row, const Range& cols, T* to) {
        gradient.make(run, n, row, cols, to);
      };
      convolution_backward_weights<T>(method_,
                                      maps.inputs[0],
                                      MadeGradient<T>{maps.sums, make},
                                      cells,
                                      site_.tile().computed.channels.begin,
                                      maps.parameters.weight_gradient);
    });
  }

  void convolve(const LayerMaps<T>& maps, const ConvolutionOutput<T>& out, bool prepared) const {
    const ForwardFilters<T> filters{
        maps.parameters.weight, normalized_ ? nullptr : maps.parameters.bias, prepared};
    convolution_forward(method_, maps.inputs[0], filters, out, maps.workspace);
  }

  Site site_;
  ConvolutionMethod method_;
  bool normalized_;
  NormStage<T> stage_;
};

}  // namespace

template <class T>
std::unique_ptr<Layer<T>> make_convolutional(const Site& site) {
  return std::make_unique<ConvolutionalLayer<T>>(site);
}

template std::unique_ptr<Layer<float>> make_convolutional(const Site&);
template std::unique_ptr<Layer<double>> make_convolutional(const Site&);

}  // namespace tessera::engine
