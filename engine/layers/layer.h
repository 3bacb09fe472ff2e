// A layer at work on one rank: it computes its tile of its map from views that hold what it
// requires, and the other way round. Layers know nothing of neighbours: the plan has put every cell
// that they read where they read it.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/comm/communicator.h"
#include "engine/ops/convolution/convolution.h"
#include "engine/ops/simd/row_kernels.h"
#include "partitioner/memory/activation_arena.h"
#include "partitioner/plan/forward_parts.h"

namespace tessera::engine {

enum class BatchNormMode {
  Sync,     // statistics over all cells of the whole batch
  Frozen,   // running statistics, as constants
  PerTile,  // statistics over what each rank owns: cheaper, and not what one device computes
};

// What is different from one pass to the next.
struct Pass {
  bool training = true;  // false: running statistics, no dropout
  BatchNormMode batch_norm = BatchNormMode::Sync;
  bool dropout = true;
  std::uint64_t seed = 0;
  Index step = 0;
  Index first_image = 0;                     // of this pass among those of the step
  const std::vector<int>* labels = nullptr;  // of each image of the pass, where there is a loss;
                                             // -1: none, the image does not count
  double loss_scale = 1;                     // one over the images of a step
  bool ends_step = false;  // gradients of parameters are complete after it: their sums begin
};

// Where a layer works, fixed for as long as it lives.
struct Site {
  const partitioner::Network* network = nullptr;
  const partitioner::Plan* plan = nullptr;
  const Communicator* communicator = nullptr;
  int layer = 0;
  int tag = 0;  // the first of kTagsPerLayer for its own messages
  double batch_norm_rate = 0.1;
  double batch_norm_epsilon = 1e-5;
  int joined_pool = partitioner::kNoLayer;   // that takes the layer's output while it is being made
  bool is_joined = false;                    // the layer is such a pool: it has nothing to do
  int winning_pool = partitioner::kNoLayer;  // whose winners the gradient of the weights is made of

  [[nodiscard]] const partitioner::LayerSpec& spec() const { return network->layer(layer); }
  [[nodiscard]] const partitioner::Tile& tile() const {
    return plan->tile(layer, communicator->rank());
  }
  [[nodiscard]] const partitioner::MapShape& input_shape(std::size_t input = 0) const {
    return network->shape(spec().inputs[input]);
  }
  [[nodiscard]] Region input_map(std::size_t input = 0) const {
    return partitioner::whole_map(*network, spec().inputs[input], plan->batch);
  }
};

inline constexpr int kTagsPerLayer = 2;

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

// The maps that a layer touches. Views of nothing where the rank has no part in a map.
template <class T>
struct LayerMaps {
  std::vector<View<const T>> inputs;
  std::vector<View<T>> input_gradients;  // data is null where nobody wants it
  View<T> output;                        // that of the joined pool where there is one
  View<T> output_gradient;
  View<T> sums;           // what the activation starts from, where it lies apart from the output
  View<T> sum_gradients;  // likewise; may be the same memory
  View<Winner> winners;   // of the layer's max-pool, or of the joined or the winning one
  ParameterViews<T> parameters;
  T* workspace = nullptr;  // scratch that layers share: what is in it does not outlive a call
  // Nothing is in the gradients of the inputs yet: where the layer assigns_input_gradients(), it
  // has to assign these.
  bool first_gradients = false;
  // Where there are any, cells of the input are still under way: forward() computes these parts one
  // after the other, and calls `await_inputs` before each with what the part `awaits`.
  std::span<const partitioner::TilePart> parts = {};
  std::function<void(int exchanges)> await_inputs = {};
  // Something to compute that takes a while: backward_output() may call it, once, while it waits
  // for others. It uses `workspace`.
  std::function<void()> meanwhile = {};
};

template <class T>
class Layer {
 public:
  virtual ~Layer() = default;

  // Assigns the output on tile().computed.
  virtual void forward(const Pass& pass, const LayerMaps<T>& maps) = 0;

  // Assigns sums and output once more, the same bits as the last forward() and without messages.
  // A view of no output: only the sums.
  virtual void recompute(const Pass& pass, const LayerMaps<T>& maps) { forward(pass, maps); }

  // Assigns the output once more, from sums that are there.
  virtual void restore(const LayerMaps<T>& /*maps*/) {}

  // The first half of the backward pass: the gradient of the output becomes that of the sums.
  // Overwrites either.
  virtual void backward_output(const Pass& /*pass*/, const LayerMaps<T>& /*maps*/) {}

  // The second half: adds to input_gradients what the gradients on tile().backward say of them, and
  // to parameter gradients, unless backward_weights() does. May overwrite the former.
  virtual void backward(const Pass& pass, const LayerMaps<T>& maps) = 0;

  // What is left to do when input_gradients are on their way to others: adds to the gradients of
  // weights what some output cells, of tile().backward, say.
  virtual void backward_weights(const LayerMaps<T>& /*maps*/, const Region& /*cells*/) {}

  // Whether backward() looks at first_gradients; else gradients begin with 0.
  [[nodiscard]] virtual bool assigns_input_gradients() const { return false; }

  // Buffers of its messages.
  [[nodiscard]] virtual Index message_bytes() const { return 0; }
};

template <class T>
[[nodiscard]] std::unique_ptr<Layer<T>> make_layer(const Site& site);

// The layer whose output is judged: the softmax that ends the network (pass-through layers aside),
// else a [cost]; -1 where there is none.
[[nodiscard]] int loss_layer(const partitioner::Network& network);

// The loss of the owned cells of the loss layer, summed over images and not yet divided by their
// number: cross-entropy of a softmax, half the squared error of a cost.
template <class T>
[[nodiscard]] double owned_loss(const Site& loss_site,
                                const std::vector<int>& labels,
                                View<const T> output);

}  // namespace tessera::engine
