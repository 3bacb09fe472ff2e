// A plan at work on one rank: its buffers, its layers, its messages. It does what the plan says and
// decides nothing; with a plan of one tile there are no messages, and that is all that is different
// on a single device.

#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/comm/channel_shares.h"
#include "engine/comm/exchange.h"
#include "engine/execution/layer_clock.h"
#include "engine/execution/parameters.h"
#include "engine/layers/layer.h"
#include "partitioner/memory/activation_arena.h"

namespace tessera::engine {

struct ExecutionOptions {
  bool training = true;         // gradients, or forward only
  bool image_gradient = false;  // also of the network's input
  bool keep_maps = false;       // so that each map can be looked at after the forward pass; else
                                // only the output and those that losses are taken of
  double batch_norm_rate = 0.1;
  double batch_norm_epsilon = 1e-5;
};

// Bytes that an execution has allocated, by what they are for.
struct ExecutionMemory {
  Index weights = 0;
  Index gradients = 0;    // of weights
  Index activations = 0;  // maps and their gradients, and what layers keep of them
  Index workspace = 0;
  Index messages = 0;
};

template <class T>
class Execution {
 public:
  // network, plan and communicator must outlive it.
  Execution(const partitioner::Network& network,
            const partitioner::Plan& plan,
            const Communicator& communicator,
            const ExecutionOptions& options);

  // The part of the input that a rank has to fill in before forward(), and where this one does.
  [[nodiscard]] Region image_region(int rank) const;
  [[nodiscard]] View<T> image();

  // All ranks call these together. backward() wants labels in the pass, or output_gradient() filled
  // in after clear_output_gradient().
  void forward(const Pass& pass);
  void clear_output_gradient();
  void backward(const Pass& pass);

  // Cells computed here of a map's values and gradients, and winners of a max-pool; views of
  // nothing where there are none.
  [[nodiscard]] View<T> map(int map);
  [[nodiscard]] View<T> map_gradient(int map);
  [[nodiscard]] View<const Winner> winners(int layer);
  [[nodiscard]] View<T> output_gradient() { return map_gradient(network_->size() - 1); }

  // All of a layer's map (gather_gradient: or of the image's gradient) in (N, C, H, W) order on
  // rank 0, empty elsewhere; owners send their cells. All ranks call this together.
  [[nodiscard]] std::vector<T> gather_map(int layer);
  [[nodiscard]] std::vector<T> gather_gradient(int map);
  [[nodiscard]] std::vector<T> gather_cells(int map, View<const T> cells) const;

  // The other way: fills the input, or the gradient of the output on owned cells, from (N, C, H, W)
  // on rank 0.
  void scatter_image(const std::vector<T>& whole);
  void scatter_output_gradient(const std::vector<T>& whole);

  // The loss of the cells that this rank owns, not yet divided by images.
  [[nodiscard]] double owned_loss(const std::vector<int>& labels);
  [[nodiscard]] Site site(int layer) const;

  // When the values that other ranks have sent are there.
  [[nodiscard]] ParameterSet<T>& parameters() {
    parameters_.finish_sharing();
    return parameters_;
  }
  // While some may still be on their way: for what does not touch them. All that forward() reads it
  // waits for.
  [[nodiscard]] ParameterSet<T>& parameters_under_way() { return parameters_; }
  [[nodiscard]] const partitioner::Network& network() const { return *network_; }
  [[nodiscard]] const partitioner::Plan& plan() const { return *plan_; }
  [[nodiscard]] const Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] ExecutionMemory memory() const;
  // By layer, what passes since the last call took to compute here.
  [[nodiscard]] std::vector<partitioner::PassSeconds> take_computing_times() {
    return clock_.take();
  }

 private:
  // A map on its way to a group, with the buffers at both ends.
  struct Edge {
    const partitioner::Exchange* plan;
    int owned_buffer;
    int required_buffer;
    int first_reader;  // layer
    Exchange<T> exchange;
    bool by_message;  // false for an image that every rank reads itself
  };

  // A normalised layer: what its phases leave for each other, and what ranks send each other of it.
  struct Norm {
    NormState<T> state;
    ChannelShares moments;
    ChannelShares gradients;
  };

  void make_norms();
  void make_edges();
  // What is computed again or restored has another place than in the forward pass.
  enum class Stage { Forward, Again, Backward };
  static constexpr Stage kStages[] = {Stage::Forward, Stage::Again, Stage::Backward};
  [[nodiscard]] LayerViews<T> make_views(int layer, Stage stage);
  [[nodiscard]] LayerViews<T>& views(int layer, Stage stage) {
    return views_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] Layer<T>& at(int layer) { return *layers_[static_cast<std::size_t>(layer)]; }
  template <class Cell>
  [[nodiscard]] View<Cell> view_at(const partitioner::MemorySlot& slot, const Region& region);
  [[nodiscard]] const partitioner::MemorySlot& value_slot(int buffer, int layer, Stage stage) const;
  [[nodiscard]] View<T> value_view(int buffer);
  [[nodiscard]] View<T> value_view(int buffer, int layer, Stage stage);
  [[nodiscard]] View<T> gradient_view(int buffer);
  [[nodiscard]] const Region& region_of(int buffer) const;
  void clear_frames(int time);
  void restore_values(int time);
  void recompute(const partitioner::LayerRun& group, const Pass& pass);
  void finish_inputs(int layer, int first, int end);
  void compute_parts(int layer, const Pass& pass);
  void take_statistics(int layer, const Pass& pass);
  void clear_gradients(int time);
  void finish_gradient(int map);
  template <class Visit>
  void for_each_exchange(Visit visit);
  void look_after_sends();
  void finish_sends();
  void compute_weights(int layer, const std::vector<Region>& parts);
  void start_sums(int last, int complete, const Pass& pass);
  [[nodiscard]] bool begins_gradient(int layer, int time) const;
  [[nodiscard]] int rank() const { return communicator_->rank(); }
  [[nodiscard]] const partitioner::LayerPlan& layer_plan(int layer) const {
    return plan_->layers[static_cast<std::size_t>(rank())][static_cast<std::size_t>(layer)];
  }

  const partitioner::Network* network_;
  const partitioner::Plan* plan_;
  const Communicator* communicator_;
  ExecutionOptions options_;
  partitioner::ActivationArena arena_;
  Array<std::byte> activations_;  // in the arena's slots
  ParameterSet<T> parameters_;
  std::vector<std::unique_ptr<Layer<T>>> layers_;
  std::vector<std::unique_ptr<Norm>> norms_;         // by layer; null where none normalises
  std::array<std::vector<LayerViews<T>>, 3> views_;  // by stage, then layer
  std::vector<partitioner::LayerRun> groups_;
  std::deque<Edge> edges_;
  std::deque<std::pair<int, Exchange<T>>> collapses_;  // map, messages
  Array<T> workspace_;
  LayerClock clock_;
};

}  // namespace tessera::engine
