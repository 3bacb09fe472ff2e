// A layer in execution on one rank: it computes its tile of its map from views that hold what it
// requires, and the other way round, a phase or a part of one at a time. Layers know nothing of
// neighbours and nothing of the order of a step: the plan has put every cell that they read where
// they read it, and what a phase leaves for a later one is in what they are handed.

#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/channel_share.h"
#include "engine/base/loss_sum.h"
#include "engine/base/targets.h"
#include "engine/base/tensor.h"
#include "engine/layers/batch_norm_mode.h"
#include "engine/ops/convolution/convolution.h"
#include "engine/ops/norm/batch_norm.h"
#include "engine/ops/simd/row_kernels.h"
#include "partitioner/memory/activation_arena.h"
#include "partitioner/network/losses.h"
#include "partitioner/plan/layer_plan.h"

namespace tessera::engine {

// What is different from one pass to the next.
struct Pass {
  bool training = true;  // false: running statistics, no dropout
  BatchNormMode batch_norm = BatchNormMode::Sync;
  bool dropout = true;
  std::uint64_t seed = 0;
  Index step = 0;
  Index number = 0;                  // of this pass among those of the step
  Index first_image = 0;             // likewise
  const Targets* targets = nullptr;  // of the images of the pass, where there is a loss
  double loss_scale = 1;             // one over the images of a step
  double object_scale = 1;           // one over the cells of a step that have got an object
  // Of the training, with those of this pass; after a training: all there could be.
  Index images_seen = std::numeric_limits<Index>::max();
  bool in_last_epochs = false;  // partitioner::in_last_epochs() of the step
  bool ends_step = false;  // gradients of parameters are complete after it: their reduction begins
  // The maps of the frozen trunk are put where its layers leave them, instead of being computed.
  bool trunk_given = false;
};

// Where a layer works, fixed for as long as it lives.
struct Site {
  const partitioner::Network* network = nullptr;
  const partitioner::Plan* plan = nullptr;
  int rank = 0;
  int layer = 0;
  partitioner::NormRule norm;
  int fused_pool = partitioner::kNoLayer;   // that takes the layer's output while it is being made
  bool is_fused = false;                    // the layer is such a pool: it has nothing to do
  int argmax_pool = partitioner::kNoLayer;  // whose argmax the gradient of the weights is made from

  [[nodiscard]] const partitioner::LayerSpec& spec() const { return network->layer(layer); }
  [[nodiscard]] const partitioner::Tile& tile() const { return plan->tile(layer, rank); }
  [[nodiscard]] const partitioner::MapShape& input_shape(std::size_t input = 0) const {
    return network->shape(spec().inputs[input]);
  }
  [[nodiscard]] Region input_map(std::size_t input = 0) const {
    return partitioner::whole_map(*network, spec().inputs[input], plan->batch);
  }
};

// Parameters and their gradients, for the output channels that the rank computes. Null where the
// layer has none.
template <class T>
struct ParameterViews {
  T* weight = nullptr;
  T* bias = nullptr;
  T* scale = nullptr;
  T* mean = nullptr;
  T* variance = nullptr;
  T* weight_gradient = nullptr;
  T* bias_gradient = nullptr;
  T* scale_gradient = nullptr;
};

// What the phases of a normalised layer leave for each other. Arrays are by channel.
template <class T>
struct NormState {
  // While forward() computes parts, where statistics are taken of lines as they come to be.
  std::optional<LineMoments<T>> lines;
  // (channels of tile().owned, kMomentFields): what this rank contributes to the batch statistics.
  std::vector<double> moments;
  // What the last activate() normalised the channels of tile().computed with.
  std::vector<ChannelNorm<T>> norms;
  // (channels of tile().backward, kGradientFields): what this rank contributes to the gradients of
  // shift and scale.
  std::vector<double> gradients;
  // These over all ranks, of the channels of tile().computed, and the cells that each channel's
  // statistics were taken over (0: they were constants): of the last backward_normalize().
  std::vector<NormGradient> totals;
  double cells = 0;
};

inline constexpr Index kMomentFields = 3;    // count, mean, sum of squared deviations
inline constexpr Index kGradientFields = 2;  // of shift, of scale

// What a layer reads and writes in one phase. Views of nothing where the rank has no part in a map.
template <class T>
struct LayerViews {
  std::vector<View<const T>> inputs;
  std::vector<View<T>> input_gradients;  // data is null where it is not needed
  View<T> output;                        // that of the fused pool where there is one
  View<T> output_gradient;
  View<T> pre_activations;  // what the activation starts from, where it lies apart from the output
  View<T> pre_activation_gradients;  // likewise; may be the same memory
  View<ArgmaxOffset> argmax;         // of the layer's max-pool, or of the fused or the argmax pool
  ParameterViews<T> parameters;
  T* workspace = nullptr;  // scratch that layers share: what is in it does not outlive a call, but
                           // for what prepare() says
  // prepare() has put filters there, and nothing else has used it since.
  bool has_prepared_filters = false;
  const HeadAssignment* assigned = nullptr;  // of a head that objects are assigned to
  // By input, whether nothing is in its gradient yet: a layer that assigns_input_gradients() has to
  // assign it then.
  std::vector<bool> first_gradients;
  // Whether nothing is in the gradient of the weights yet: backward_weights() assigns it then.
  bool first_weight_gradient = false;
  NormState<T>* norm = nullptr;  // where the layer normalises
  // What ranks contribute to its statistics (activate()) or to their gradients
  // (backward_normalize()), in rank order: none where running statistics are to be used.
  std::span<const ChannelShare> shares;

  // What forward() assigns: the output itself where no activation starts from anything else.
  [[nodiscard]] View<T> forward_output() const {
    return pre_activations.data != nullptr ? pre_activations : output;
  }
};

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  // Puts transformed filters into the workspace for the parts that forward() computes next. False:
  // there is nothing to prepare.
  [[nodiscard]] virtual bool prepare(const LayerViews<T>& /*views*/) { return false; }

  // For a normalised layer whose statistics are wanted, before the first part: makes norm->lines,
  // where forward() can take lines in.
  virtual void begin_statistics(const LayerViews<T>& /*views*/) {}

  // Assigns pre-activations, or the output of a layer that has none, on a part of tile().computed.
  // Computing a cell again gives the same bits; views of no output: only the pre-activations.
  virtual void forward(const Pass& pass,
                       const LayerViews<T>& views,
                       const partitioner::TilePart& part) = 0;

  // For a normalised layer, when all of its tile is there: assigns norm->moments, and is done with
  // norm->lines.
  virtual void statistics(const LayerViews<T>& /*views*/) {}

  // Turns pre-activations into the output, with batch statistics put together of `shares`, or
  // running ones; updates these.
  virtual void activate(const LayerViews<T>& /*views*/) {}

  // Assigns the output once more, from pre-activations that are there: the same bits as the last
  // activate().
  virtual void restore(const LayerViews<T>& /*views*/) {}

  // The gradient of the output becomes that of the pre-activations, and adds to that of the bias;
  // where the layer normalises, assigns norm->gradients, and brings the gradient of the output
  // through an activation that takes an exponential. Overwrites either gradient.
  virtual void backward_activation(const LayerViews<T>& /*views*/) {}

  // The rest of it where the layer normalises: adds the gradients of shift and scale, put together
  // of `shares`.
  virtual void backward_normalize(const Pass& /*pass*/, const LayerViews<T>& /*views*/) {}

  // Adds to input_gradients (see first_gradients) what the gradients on tile().backward say of
  // them. May overwrite the latter in layers without weights.
  virtual void backward_data(const Pass& pass, const LayerViews<T>& views) = 0;

  // Adds to the gradients of weights what some output cells, of tile().backward, say; or assigns
  // them, see first_weight_gradient.
  virtual void backward_weights(const LayerViews<T>& /*views*/, const Region& /*cells*/) {}
  // Whether it can, for these cells; else the gradient begins with 0.
  [[nodiscard]] virtual bool assigns_weight_gradient(const LayerViews<T>& /*views*/,
                                                     const Region& /*cells*/) const {
    return false;
  }

  // Whether backward_data() looks at first_gradients; else gradients begin with 0.
  [[nodiscard]] virtual bool assigns_input_gradients() const { return false; }
};

template <class T>
[[nodiscard]] std::unique_ptr<Layer<T>> make_layer(const Site& site);

// The loss of the cells that the rank owns of its layer, summed over images and not yet divided by
// their number: cross-entropy of a softmax, half the squared error of a cost, times its weight; the
// cost of a head, see engine/detection/head.h. The pass has targets.
struct OwnedLoss {
  double sum = 0;
  LossMean mean;
  LossMean by_objects;
};
// `assigned`: of a head that objects are assigned to.
template <class T>
[[nodiscard]] OwnedLoss owned_loss(const Site& site,
                                   const partitioner::Loss& loss,
                                   const Pass& pass,
                                   const HeadAssignment* assigned,
                                   View<const T> output);

}  // namespace tessera::engine
