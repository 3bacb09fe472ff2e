// A plan in execution on one rank: its buffers, its layers, its messages. It performs the plan's
// schedule action by action and decides nothing; with a plan of one tile there are no messages, and
// that is all that is different on a single device.
//
// A step is, once per pass: forward(), exchange_loss(), clear_output_gradient(), backward(); then
// update() or finish_gradients(). All ranks call these together.

#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/channel_shares.h"
#include "engine/comm/exchange.h"
#include "engine/execution/action_clock.h"
#include "engine/execution/action_places.h"
#include "engine/execution/loss_exchange.h"
#include "engine/execution/parameters.h"
#include "engine/layers/layer.h"
#include "partitioner/memory/activation_arena.h"
#include "partitioner/plan/schedule.h"

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

  // How many images each rank has in the next passes, of a plan that cuts images alone
  // (partitioner/plan/image_shares.h): no more than the plan says, and not the same in all passes.
  // The plan and its batch are changed here alone; memory and parameters stay where they are.
  void set_images(const std::vector<Index>& images);

  // The part of the input that a rank has to fill in before forward(), and where this one does.
  [[nodiscard]] Region image_region(int rank) const;
  [[nodiscard]] View<T> image();

  // backward() wants targets in the pass, or output_gradient() filled in after
  // clear_output_gradient().
  void forward(const Pass& pass);
  // The loss of all ranks, 0 where the pass has no targets; of a training pass of replicas that may
  // be steps apart, that of the own replica. `stop_signal` and `problem` are what this rank has to
  // tell the others, see PassOutcome.
  [[nodiscard]] PassOutcome exchange_loss(const Pass& pass,
                                          int stop_signal = 0,
                                          const std::optional<PassProblem>& problem = {});
  void clear_output_gradient();
  void backward(const Pass& pass);
  // After the pass that ends a step. update_bucket(bucket) updates the elements of its parameters
  // that this rank owns, see ParameterSet; their values may still be on their way to other ranks
  // afterwards: the next forward() waits for them.
  template <class UpdateBucket>
  void update(const Pass& pass, UpdateBucket update_bucket) {
    const Performance& update = performance(pass, options_.training);
    perform(update, update.schedule.update, pass, update_bucket);
  }
  // Instead of an update: owners have the gradients summed over ranks.
  void finish_gradients(const Pass& pass);

  // Cells computed here of a map's values and gradients, and the argmax of a max-pool; views of
  // nothing where there are none.
  [[nodiscard]] View<T> map(int map);
  [[nodiscard]] View<T> map_gradient(int map);
  [[nodiscard]] View<const ArgmaxOffset> argmax(int layer);
  [[nodiscard]] View<T> output_gradient() { return map_gradient(network_->size() - 1); }

  // All of a layer's map (gather_gradient: or of the image's gradient) in (N, C, H, W) order on
  // rank 0, empty elsewhere; owners send their cells. All ranks call this together.
  [[nodiscard]] std::vector<T> gather_map(int layer);
  [[nodiscard]] std::vector<T> gather_gradient(int map);
  [[nodiscard]] std::vector<T> gather_cells(int map, View<const T> cells) const;

  // The other way: fills the input, or the gradient of the output on owned cells, from (N, C, H, W)
  // on rank 0. An output that nothing that learns leads to has no gradient: nothing is filled then.
  void scatter_image(const std::vector<T>& whole);
  void scatter_output_gradient(const std::vector<T>& whole);

  // The sum of the network's losses over the cells that this rank owns, not yet divided by images.
  [[nodiscard]] double owned_loss(const Targets& targets);
  [[nodiscard]] Site site(int layer) const;

  // When the values that other ranks have sent are there.
  [[nodiscard]] ParameterSet<T>& parameters() {
    parameters_.finish_values();
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

  // What a pass performs; of which record() notes each action from then on, or none.
  [[nodiscard]] const partitioner::Schedule& schedule(const Pass& pass) {
    return performance(pass, options_.training).schedule;
  }
  void record(bool on) { clock_.record(on); }
  [[nodiscard]] const std::vector<PerformedAction>& performed() const { return clock_.performed(); }

 private:
  // A map on its way to a group and its gradient on the way back, or a gradient on its way to its
  // owners, with the cells at both ends.
  struct Edge {
    Exchange<T> exchange;
    View<T> owned;
    View<T> required;
    View<T> owned_gradient;
    View<T> required_gradient;
  };

  // Of a layer that normalises by statistics of the batch: what ranks send each other.
  struct BatchStatistics {
    std::optional<ChannelShares> moments;
    std::optional<ChannelShares> gradients;
  };

  // A schedule, and where its actions stand.
  struct Performance {
    partitioner::ScheduleOptions options;
    partitioner::Schedule schedule;
    std::vector<ActionPlace> places;
  };

  // Memory that is to be zeroed when others have had it.
  struct Zeroing {
    struct Frame {
      View<T> cells;
      Region map;  // outside of it
    };
    std::vector<Frame> frames;
    std::vector<std::span<std::byte>> gradients;
  };

  void make_norms();
  void make_statistics();
  void make_views();
  void make_edges();
  void make_zeroing();
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
  [[nodiscard]] Zeroing& zeroing(int time) {
    return zeroing_[static_cast<std::size_t>(time - partitioner::kImage)];
  }
  [[nodiscard]] const partitioner::LayerPlan& planned(int layer) const {
    return plan_->layers[static_cast<std::size_t>(rank())][static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] BatchStatistics& statistics(int layer) {
    return *statistics_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] Edge& edge(int transfer) { return *edge_of_[static_cast<std::size_t>(transfer)]; }
  [[nodiscard]] const partitioner::Transfer& transfer(int number) const {
    return plan_->transfers[static_cast<std::size_t>(number)];
  }

  [[nodiscard]] bool begins_gradient(int layer, int time) const;
  [[nodiscard]] const Performance& performance(const Pass& pass, bool update);
  void expect_restored(const Performance& performance) const;
  [[nodiscard]] bool restores(int map, int time) const;
  template <class UpdateBucket>
  void perform(const Performance& performance,
               const partitioner::Section& section,
               const Pass& pass,
               UpdateBucket update_bucket) {
    for (int i = section.begin; i < section.end; ++i) {
      const partitioner::Action& action = performance.schedule.actions[static_cast<std::size_t>(i)];
      if (is_performed(action, pass)) {
        const ActionPlace& place = performance.places[static_cast<std::size_t>(i)];
        const ActionClock::Span span(clock_, place, i, pass.number);
        if (action.bucket >= 0) {
          update_bucket(action.bucket);
        } else {
          perform(action, place, pass);
        }
      }
    }
  }
  [[nodiscard]] static bool is_performed(const partitioner::Action& action, const Pass& pass) {
    using Passes = partitioner::Action::Passes;
    return action.passes == Passes::Every ||
           (action.passes == Passes::First ? pass.number == 0 : pass.ends_step);
  }
  void perform(const partitioner::Action& action, const ActionPlace& place, const Pass& pass);
  void advance(int time);
  void compute(const partitioner::Action& action, int time, const Pass& pass);
  void compute_forward(int layer, int part, const Pass& pass);
  void compute_again(int layer, const Pass& pass);
  void compute_weights(int layer, int part);
  void start(int transfer);
  void finish(int transfer);
  void progress_sends();
  void finish_sends();
  [[nodiscard]] int rank() const { return communicator_->rank(); }

  const partitioner::Network* network_;
  const partitioner::Plan* made_for_;               // what decides the order of a step, and memory
  const partitioner::Plan* plan_;                   // with the images of the next pass
  std::unique_ptr<partitioner::Plan> with_images_;  // where these were set
  std::vector<Index> images_;                       // by rank
  const Communicator* communicator_;
  ExecutionOptions options_;
  partitioner::ActivationArena arena_;
  Array<std::byte> activations_;  // in the arena's slots
  ParameterSet<T> parameters_;
  std::vector<std::unique_ptr<Layer<T>>> layers_;
  // By layer; null where none normalises, or none by statistics of the batch.
  std::vector<std::unique_ptr<NormState<T>>> norms_;  // what its phases leave for each other
  std::vector<std::unique_ptr<BatchStatistics>> statistics_;
  std::array<std::vector<LayerViews<T>>, 3> views_;  // by stage, then layer
  std::deque<Edge> edges_;
  std::vector<Edge*> edge_of_;  // by transfer; null: not of a map
  std::vector<partitioner::Loss> losses_;
  LossExchange loss_;                         // of all ranks
  std::optional<LossExchange> replica_loss_;  // of a replica that others do not wait for
  LossExchange* exchanged_loss_ = &loss_;     // of the two, that of the pass
  PassOutcome outcome_;                       // what this rank tells the others
  std::vector<Zeroing> zeroing_;              // by time, from kImage on
  std::deque<Performance> performances_;      // that have been asked for
  int time_ = 0;                              // of the last action
  Array<T> workspace_;
  ActionClock clock_;
};

}  // namespace tessera::engine
