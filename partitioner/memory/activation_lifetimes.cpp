#include "partitioner/memory/activation_lifetimes.h"

#include <algorithm>

#include "partitioner/base/layout.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

class Lifetimes {
 public:
  Lifetimes(const Network& network, const Plan& plan, int rank, const ArenaOptions& options)
      : network_(network), plan_(plan), rank_(rank), options_(options) {
    const auto own = static_cast<std::size_t>(rank);
    const auto layers = static_cast<std::size_t>(network.size());
    arena_.values = ActivationArena::OfBuffers(plan.buffers[own].size(), unused());
    arena_.recomputed = arena_.restored = arena_.gradients = arena_.values;
    arena_.pre_activations.assign(layers, unused());
    arena_.recomputed_pre_activations = arena_.pre_activation_gradients = arena_.pre_activations;
    arena_.argmax = arena_.recomputed_argmax = arena_.pre_activations;
    arena_.fused_pool.assign(layers, kNoLayer);
    arena_.argmax_pool.assign(layers, kNoLayer);
    arena_.again.assign(layers, {});
  }

  ActivationArena compute() {
    for (int layer = 0; layer < network_.size(); ++layer) {
      const LayerPlan& layer_plan = plan_.layers[slot(rank_)][slot(layer)];
      arena_.argmax_pool[slot(layer)] = layer_plan.argmax_pool;
      arena_.fused_pool[slot(layer)] = options_.keep_maps ? kNoLayer : layer_plan.fused_pool;
    }
    for (const LayerRun& group : groups_of(plan_)) {
      recompute(group);
    }
    for (int map = kImage; map < network_.size(); ++map) {
      values_of(map);
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      inputs_of(layer);
      pre_activations_of(layer);
      argmax_of(layer);
    }
    if (options_.training) {
      gradients();
      restore();
    }
    leave_out_fused_maps();
    size_buffers();
    return std::move(arena_);
  }

 private:
  static std::size_t slot(int index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] MemorySlot unused() const {
    return {0, 0, last_time(network_) + 1, kImage - 1};  // from after to: never
  }
  [[nodiscard]] int first(int layer) const { return gradient_time(network_, layer); }
  [[nodiscard]] int second(int layer) const { return gradient_time(network_, layer) + 1; }
  // When the last of the gradient of the layer's weights is computed; of the image as of a layer
  // without.
  [[nodiscard]] int weights(int layer) const {
    const int next = layer == kImage ? kNoLayer : plan_.deferred[slot(layer)].next;
    return next == kNoLayer ? second(layer) : first(next);
  }
  [[nodiscard]] int again(int layer) const {
    return recompute_time(network_, group_end_[slot(layer)], layer);
  }
  [[nodiscard]] BufferIndex reads(int layer, std::size_t input) const {
    return plan_.read_from[slot(rank_)][slot(layer)][input];
  }

  template <class... Times>
  static void need(MemorySlot& slot, Times... times) {
    slot.from = std::min({slot.from, times...});
    slot.to = std::max({slot.to, times...});
  }
  template <class... Times>
  static void need(ActivationArena::OfBuffers& slots, BufferIndex buffer, Times... times) {
    if (buffer != kNoBuffer) {
      need(slots[buffer], times...);
    }
  }

  // The convolution that makes the output of a fused pool, else the layer itself.
  [[nodiscard]] int maker(int layer) const {
    const bool fused = layer > 0 && arena_.fused_pool[slot(layer - 1)] == layer;
    return fused ? layer - 1 : layer;
  }

  void recompute(const LayerRun& group) {
    group_end_.resize(slot(group.last) + 1, group.last);
    if (!options_.training || !plan_.recomputes(plan_.group(group.first))) {
      return;
    }
    if (options_.keep_maps) {
      const auto layers = recomputed_layers(network_, group, arena_.fused_pool);
      std::copy(layers.begin(), layers.end(), arena_.again.begin() + group.first);
      return;
    }
    for (int layer = group.first; layer <= group.last; ++layer) {
      arena_.again[slot(layer)] = plan_.layers[slot(rank_)][slot(layer)].recompute;
    }
  }

  // Whether a map is computed again for those who read it in its own group.
  [[nodiscard]] bool comes_again(int map) const {
    return map != kImage && arena_.again[slot(maker(map))].output;
  }

  // Whether a normalised map of a recomputed group comes back from its pre-activations.
  [[nodiscard]] bool comes_from_recomputed_pre_activations(int map) const {
    return map != kImage && options_.training && plan_.recomputes(plan_.group(map)) &&
           plan_.layers[slot(rank_)][slot(map)].restores_output;
  }

  void values_of(int map) {
    const BufferIndex buffer = plan_.producer(rank_, map);
    need(arena_.values, buffer, map == kImage ? kImage : maker(map));
    need(arena_.values, buffer, map);  // sent off
    if (map == kImage) {
      return;
    }
    if (last_backward_reader(network_, map) == network_.size()) {
      need(arena_.values, buffer, last_time(network_));
    }
    if (comes_again(map)) {
      need(arena_.recomputed, buffer, again(maker(map)));
    }
    // A fused pool holds what its convolution's activation made of the argmax cells.
    if (options_.training && backward_reads_output(network_.layer(maker(map)))) {
      need(comes_again(map) ? arena_.recomputed : arena_.values, buffer, second(maker(map)));
    }
  }

  void inputs_of(int layer) {
    const bool in_backward = options_.training && backward_reads_inputs(network_.layer(layer));
    for (std::size_t input = 0; input < network_.layer(layer).inputs.size(); ++input) {
      const BufferIndex buffer = reads(layer, input);
      const int map = network_.layer(layer).inputs[input];
      // An image that the rank reads itself is there from the start.
      need(arena_.values, buffer, map == kImage ? kImage : layer);
      need(arena_.values, buffer, layer);
      const bool inside = plan_.group(map) == plan_.group(layer);
      auto& values = inside && comes_again(map) ? arena_.recomputed : arena_.values;
      if (arena_.again[slot(layer)].runs) {
        need(values, buffer, again(layer));
      }
      if (in_backward) {
        const bool from_pre_activations = inside && comes_from_recomputed_pre_activations(map);
        auto& in_place = from_pre_activations ? arena_.restored : values;
        need(in_place, buffer, second(layer), weights(layer));
      }
    }
  }

  void pre_activations_of(int layer) {
    const Index bytes = blocked_volume(plan_.tile(layer, rank_).computed) * options_.scalar_bytes;
    const LayerSpec& spec = network_.layer(layer);
    const bool keeps = keeps_pre_activations(spec.operation);
    const bool fuses = arena_.fused_pool[slot(layer)] != kNoLayer;
    const bool in_training = options_.training && spec.has_backward;
    if (!keeps && !fuses) {
      return;
    }
    MemorySlot& pre_activations = arena_.pre_activations[slot(layer)];
    pre_activations.bytes = bytes;
    need(pre_activations, layer);
    MemorySlot* in_backward = &pre_activations;
    if (arena_.again[slot(layer)].runs) {
      in_backward = &arena_.recomputed_pre_activations[slot(layer)];
      in_backward->bytes = bytes;
      need(*in_backward, again(layer));
    }
    if (keeps && in_training) {
      need(*in_backward, second(layer), weights(layer));
    }
    const bool wanted = spec.inputs[0] != kImage || options_.image_gradient ||
                        arena_.argmax_pool[slot(layer)] == kNoLayer;
    if (!keeps && in_training && wanted) {
      MemorySlot& gradients = arena_.pre_activation_gradients[slot(layer)];
      gradients.bytes = bytes;
      need(gradients, first(layer), second(layer), weights(layer));
    }
  }

  // When the gradient of a normalised layer's output is last looked at: when that of its
  // pre-activations is made in their place, or, where nobody but the layer's weights wants it,
  // piece by piece for these.
  [[nodiscard]] int normalized_back(int layer) const {
    return network_.layer(layer).inputs[0] == kImage ? weights(layer) : first(layer);
  }
  // When argmax and gradients of the pool fused with a layer are.
  [[nodiscard]] int unpooled(int layer) const {
    if (normalizes(network_.layer(layer).operation)) {
      return normalized_back(layer);
    }
    return arena_.argmax_pool[slot(layer)] == kNoLayer ? first(layer) : weights(layer);
  }

  void argmax_of(int layer) {
    const LayerSpec& spec = network_.layer(layer);
    if (!options_.training || !spec.has_backward || !layer_traits(spec.operation).keeps_argmax) {
      return;
    }
    MemorySlot& argmax = arena_.argmax[slot(layer)];
    argmax.bytes = blocked_volume(plan_.tile(layer, rank_).computed);
    need(argmax, maker(layer));
    MemorySlot* in_backward = &argmax;
    if (comes_again(layer)) {
      in_backward = &arena_.recomputed_argmax[slot(layer)];
      in_backward->bytes = argmax.bytes;
      need(*in_backward, again(maker(layer)));
    }
    need(*in_backward, second(layer), unpooled(maker(layer)));
    if (layer > 0 && arena_.argmax_pool[slot(layer - 1)] == layer) {
      need(*in_backward, weights(layer - 1));
    }
  }

  void gradients() {
    for (int map = kImage; map < network_.size(); ++map) {
      const BufferIndex buffer = plan_.producer(rank_, map);
      need(arena_.gradients, buffer, first(map));
      if (map == kImage || !normalizes(network_.layer(map).operation)) {
        need(arena_.gradients, buffer, second(map), weights(map));
      } else {
        need(arena_.gradients, buffer, normalized_back(map));
      }
      if (map != kImage && maker(map) != map) {
        need(arena_.gradients, buffer, unpooled(maker(map)));
      }
    }
    need(arena_.gradients, plan_.producer(rank_, network_.size() - 1), network_.size());
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (std::size_t input = 0; input < network_.layer(layer).inputs.size(); ++input) {
        need(arena_.gradients, reads(layer, input), second(layer));
      }
    }
    for (const BufferIndex i : arena_.gradients.indices()) {
      const int map = plan_.buffers[slot(rank_)][i].map;
      if (!network_.takes_gradient(map) || (map == kImage && !options_.image_gradient)) {
        arena_.gradients[i] = unused();
      }
    }
  }

  // Normalised maps whose cells all come from here need not be kept between forward and backward.
  void restore() {
    for (int map = 0; map < network_.size() - 1 && !options_.keep_maps; ++map) {
      const BufferIndex buffer = plan_.producer(rank_, map);
      if (buffer == kNoBuffer || !plan_.layers[slot(rank_)][slot(map)].restores_output ||
          plan_.recomputes(plan_.group(map))) {
        continue;
      }
      MemorySlot& values = arena_.values[buffer];
      MemorySlot& restored = arena_.restored[buffer];
      values.to = map;
      for (const int reader : readers_of(network_, map)) {
        need(values, reader);
        if (arena_.again[slot(reader)].runs) {
          need(restored, again(reader));
        }
        if (backward_reads_inputs(network_.layer(reader))) {
          need(restored, second(reader), weights(reader));
        }
      }
    }
  }

  void leave_out_fused_maps() {
    for (int layer = 0; layer < network_.size(); ++layer) {
      const BufferIndex buffer = plan_.producer(rank_, layer);
      if (arena_.fused_pool[slot(layer)] != kNoLayer && buffer != kNoBuffer) {
        arena_.values[buffer] = arena_.recomputed[buffer] = arena_.restored[buffer] =
            arena_.gradients[buffer] = unused();
      }
    }
  }

  void size_buffers() {
    const auto& buffers = plan_.buffers[slot(rank_)];
    for (const BufferIndex i : buffers.indices()) {
      const Index bytes = blocked_volume(buffers[i].region) * options_.scalar_bytes;
      for (auto* slots :
           {&arena_.values, &arena_.recomputed, &arena_.restored, &arena_.gradients}) {
        MemorySlot& slot = (*slots)[i];
        slot.bytes = slot.from <= slot.to ? bytes : 0;
      }
    }
  }

  const Network& network_;
  const Plan& plan_;
  int rank_;
  ArenaOptions options_;
  std::vector<int> group_end_;  // by layer: the last of its group
  ActivationArena arena_;
};

}  // namespace

ActivationArena activation_lifetimes(const Network& network,
                                     const Plan& plan,
                                     int rank,
                                     const ArenaOptions& options) {
  return Lifetimes(network, plan, rank, options).compute();
}

}  // namespace tessera::partitioner
