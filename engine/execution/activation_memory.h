// All that lies between layers on one rank: maps, their gradients, and what layers keep for their
// backward pass, in one array laid out by partitioner/memory/activation_arena.h. Buffers, layers
// and maps are numbered as in the plan; a view has no data where the rank has nothing of the kind.
//
// Things take turns in the same place. When one is needed from some time on, another has left its
// own there: advance() sets cells outside of maps to 0, and gradients that nobody assigns.

#pragma once

#include <span>
#include <vector>

#include "engine/base/tensor.h"
#include "engine/layers/layer.h"
#include "partitioner/memory/activation_arena.h"

namespace tessera::engine {

// What is computed again or restored has another place than in the forward pass.
enum class Stage { Forward, Again, Backward };
inline constexpr Stage kStages[] = {Stage::Forward, Stage::Again, Stage::Backward};

template <class T>
class ActivationMemory {
 public:
  // network and plan must outlive it; options.scalar_bytes is the size of T.
  ActivationMemory(const partitioner::Network& network,
                   const partitioner::Plan& plan,
                   int rank,
                   const partitioner::ArenaOptions& options);

  // Views from now on are those of another plan, which has the same buffers, of fewer cells. It
  // must outlive this.
  void set_plan(const partitioner::Plan& plan) { plan_ = &plan; }

  [[nodiscard]] const partitioner::ActivationArena& arena() const { return arena_; }
  [[nodiscard]] Index bytes() const { return cells_.bytes(); }

  // In the forward pass, or at any time where maps are kept.
  [[nodiscard]] View<T> values(partitioner::BufferIndex buffer);
  [[nodiscard]] View<T> gradient(partitioner::BufferIndex buffer);
  // In the buffer that the rank itself fills.
  [[nodiscard]] View<T> image();
  [[nodiscard]] View<T> map(int map);
  [[nodiscard]] View<T> map_gradient(int map);
  [[nodiscard]] View<const ArgmaxOffset> argmax(int layer);  // of a max-pool

  // What a layer reads and writes in a stage; parameters, workspace and norm are left out.
  [[nodiscard]] LayerViews<T> views(int layer, Stage stage);

  // By input, whether nothing is in its gradient before the layer's backward pass.
  [[nodiscard]] std::vector<bool> begun_gradients(int layer) const;
  // The layer's backward pass assigns all gradients that are needed from then on: none is zeroed.
  void leave_gradients_to(int layer);

  // Whether the map comes back from pre-activations at that time, and how many of the rank do so at
  // any.
  [[nodiscard]] bool restores(int map, int time) const;
  [[nodiscard]] Index count_restored() const;

  // The time of the last action, which then only advances.
  void set_time(int time) { time_ = time; }
  [[nodiscard]] int time() const { return time_; }
  void advance(int time);
  // As advance() does for the gradient of the output.
  void clear_output_gradient();

 private:
  struct Frame {
    View<T> cells;
    Region map;  // outside of it
  };
  struct Zeroing {
    std::vector<Frame> frames;
    std::vector<std::span<std::byte>> gradients;
  };

  void plan_zeroing();
  [[nodiscard]] Zeroing& zeroing(int time) {
    return zeroing_[static_cast<std::size_t>(time - partitioner::kImage)];
  }
  template <class Cell>
  [[nodiscard]] View<Cell> view_at(const partitioner::MemorySlot& slot, const Region& region);
  [[nodiscard]] const partitioner::MemorySlot& value_slot(partitioner::BufferIndex buffer,
                                                          int layer,
                                                          Stage stage) const;
  [[nodiscard]] View<T> values(partitioner::BufferIndex buffer, int layer, Stage stage);
  [[nodiscard]] const Region& region_of(partitioner::BufferIndex buffer) const {
    return plan_->buffer(rank_, buffer).region;
  }

  const partitioner::Network* network_;
  const partitioner::Plan* plan_;
  int rank_;
  partitioner::ActivationArena arena_;
  Array<std::byte> cells_;        // in the arena's slots
  std::vector<Zeroing> zeroing_;  // by time, from kImage on
  int time_ = 0;
};

}  // namespace tessera::engine
