#include "partitioner/activation_arena.h"

#include <algorithm>
#include <numeric>

#include "partitioner/layer_memory.h"
#include "partitioner/layout.h"

namespace partitioner {

namespace {

constexpr Index kAlignment = 64;  // a cache line

Index aligned(Index bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Whether cells of each map travel to or from the rank, or between two of its buffers.
std::vector<bool> exchanged_maps(const Plan& plan, int rank) {
  std::vector<bool> exchanged(plan.tiles.size(), false);
  for (const auto* exchanges : {&plan.exchanges, &plan.collapses}) {
    for (const Exchange& exchange : *exchanges) {
      for (const Message& message : exchange.messages) {
        if (message.from == rank || message.to == rank) {
          exchanged[map_slot(exchange.map)] = true;
        }
      }
    }
  }
  return exchanged;
}

std::vector<int> readers_of(const Network& network, int map) {
  std::vector<int> readers;
  for (int layer = map + 1; layer < network.size(); ++layer) {
    for (const int input : network.layer(layer).inputs) {
      if (input == map) {
        readers.push_back(layer);
      }
    }
  }
  return readers;
}

// Works out when each thing is needed.
class Lifetimes {
 public:
  Lifetimes(const Network& network, const Plan& plan, int rank, const ArenaOptions& options)
      : network_(network),
        plan_(plan),
        rank_(rank),
        options_(options),
        exchanged_(exchanged_maps(plan, rank)) {
    const auto own = static_cast<std::size_t>(rank);
    const auto layers = static_cast<std::size_t>(network.size());
    arena_.values.assign(plan.buffers[own].size(), unused());
    arena_.restored = arena_.gradients = arena_.values;
    arena_.sums.assign(layers, unused());
    arena_.sum_gradients = arena_.winners = arena_.sums;
    arena_.joined_pool.assign(layers, kNoLayer);
  }

  ActivationArena compute() {
    for (int layer = 0; layer < network_.size() && !options_.keep_maps; ++layer) {
      arena_.joined_pool[slot(layer)] = joined_pool(layer);
    }
    for (int map = kImage; map < network_.size(); ++map) {
      values_of(map);
    }
    for (int layer = 0; layer < network_.size(); ++layer) {
      inputs_of(layer);
      kept_by(layer);
    }
    if (options_.training) {
      gradients();
      restore();
    }
    leave_out_joined_maps();
    size_buffers();
    return arena_;
  }

 private:
  static std::size_t slot(int index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] MemorySlot unused() const {
    return {0, 0, last_time(network_) + 1, kImage - 1};  // from after to: never
  }
  [[nodiscard]] int second(int layer) const { return gradient_time(network_, layer) + 1; }
  [[nodiscard]] int reads(int layer, std::size_t input) const {
    return plan_.read_from[slot(rank_)][slot(layer)][input];
  }

  static void need(MemorySlot& slot, int time) {
    slot.from = std::min(slot.from, time);
    slot.to = std::max(slot.to, time);
  }
  static void need(std::vector<MemorySlot>& slots, int buffer, int time) {
    if (buffer != kNoBuffer) {
      need(slots[slot(buffer)], time);
    }
  }

  // The convolution that makes the output of a joined pool, else the layer itself.
  [[nodiscard]] int maker(int layer) const {
    const bool joined = layer > 0 && arena_.joined_pool[slot(layer - 1)] == layer;
    return joined ? layer - 1 : layer;
  }

  // See ActivationArena::joined_pool.
  [[nodiscard]] int joined_pool(int layer) const {
    const Operation& operation = network_.layer(layer).operation;
    const int next = layer + 1;
    if (!std::holds_alternative<Convolution>(operation) || exchanged_[map_slot(layer)] ||
        readers_of(network_, layer) != std::vector<int>{next}) {
      return kNoLayer;
    }
    const auto* pool = std::get_if<MaxPool>(&network_.layer(next).operation);
    const bool gradient_needs_values = keeps_sums(operation) && !normalizes(operation);
    if (pool == nullptr || pool->size != pool->stride || gradient_needs_values) {
      return kNoLayer;
    }
    const int buffer = plan_.producer(rank_, layer);
    return buffer != kNoBuffer && buffer == reads(next, 0) ? next : kNoLayer;
  }

  void values_of(int map) {
    const int buffer = plan_.producer(rank_, map);
    need(arena_.values, buffer, map == kImage ? kImage : maker(map));
    need(arena_.values, buffer, map);  // sent off
    if (map == network_.size() - 1 || is_judged(map)) {
      need(arena_.values, buffer, last_time(network_));
    }
    // A joined pool holds what its convolution's activation made of the winners.
    if (options_.training && map != kImage &&
        backward_reads_output(network_.layer(maker(map)).operation)) {
      need(arena_.values, buffer, second(maker(map)));
    }
  }

  // Losses are taken of it after the forward pass.
  [[nodiscard]] bool is_judged(int map) const {
    if (map == kImage) {
      return false;
    }
    const Operation& operation = network_.layer(map).operation;
    return std::holds_alternative<Softmax>(operation) || std::holds_alternative<Cost>(operation);
  }

  void inputs_of(int layer) {
    for (std::size_t input = 0; input < network_.layer(layer).inputs.size(); ++input) {
      const int buffer = reads(layer, input);
      // An image that the rank reads itself is there from the start.
      const bool is_image = network_.layer(layer).inputs[input] == kImage;
      need(arena_.values, buffer, is_image ? kImage : layer);
      need(arena_.values, buffer, layer);
      if (options_.training && backward_reads_inputs(network_.layer(layer).operation)) {
        need(arena_.values, buffer, second(layer));
      }
    }
  }

  void kept_by(int layer) {
    const Operation& operation = network_.layer(layer).operation;
    const Region& computed = plan_.tile(layer, rank_).computed;
    const int pool = arena_.joined_pool[slot(layer)];
    const bool keeps = keeps_sums(operation);
    if (keeps || pool != kNoLayer) {
      MemorySlot& sums = arena_.sums[slot(layer)];
      sums.bytes = blocked_volume(computed) * options_.scalar_bytes;
      need(sums, layer);
      if (keeps && options_.training) {
        need(sums, second(layer));
      }
    }
    if (options_.training && pool != kNoLayer && !keeps) {
      MemorySlot& gradients = arena_.sum_gradients[slot(layer)];
      gradients.bytes = blocked_volume(computed) * options_.scalar_bytes;
      need(gradients, gradient_time(network_, layer));
      need(gradients, second(layer));
    }
    if (options_.training && std::holds_alternative<MaxPool>(operation)) {
      MemorySlot& winners = arena_.winners[slot(layer)];
      winners.bytes = blocked_volume(computed);
      need(winners, maker(layer));
      need(winners, second(layer));
      need(winners, gradient_time(network_, maker(layer)));
    }
  }

  void gradients() {
    for (int map = kImage; map < network_.size(); ++map) {
      const int buffer = plan_.producer(rank_, map);
      need(arena_.gradients, buffer, gradient_time(network_, map));
      if (map == kImage || !normalizes(network_.layer(map).operation)) {
        need(arena_.gradients, buffer, second(map));
      }
      if (map != kImage && maker(map) != map) {
        need(arena_.gradients, buffer, gradient_time(network_, maker(map)));
      }
    }
    need(arena_.gradients, plan_.producer(rank_, network_.size() - 1), network_.size());
    for (int layer = 0; layer < network_.size(); ++layer) {
      for (std::size_t input = 0; input < network_.layer(layer).inputs.size(); ++input) {
        need(arena_.gradients, reads(layer, input), second(layer));
      }
    }
    if (!options_.image_gradient) {
      for (std::size_t i = 0; i < arena_.gradients.size(); ++i) {
        if (plan_.buffers[slot(rank_)][i].map == kImage) {
          arena_.gradients[i] = unused();
        }
      }
    }
  }

  // Normalised maps whose cells all come from here need not be kept between forward and backward.
  void restore() {
    for (int map = 0; map < network_.size() - 1 && !options_.keep_maps; ++map) {
      const int buffer = plan_.producer(rank_, map);
      if (buffer == kNoBuffer || !normalizes(network_.layer(map).operation) ||
          exchanged_[map_slot(map)]) {
        continue;
      }
      MemorySlot& values = arena_.values[slot(buffer)];
      MemorySlot& restored = arena_.restored[slot(buffer)];
      values.to = map;
      for (const int reader : readers_of(network_, map)) {
        need(values, reader);
        if (backward_reads_inputs(network_.layer(reader).operation)) {
          need(restored, second(reader));
        }
      }
    }
  }

  void leave_out_joined_maps() {
    for (int layer = 0; layer < network_.size(); ++layer) {
      const int buffer = plan_.producer(rank_, layer);
      if (arena_.joined_pool[slot(layer)] != kNoLayer && buffer != kNoBuffer) {
        arena_.values[slot(buffer)] = arena_.restored[slot(buffer)] =
            arena_.gradients[slot(buffer)] = unused();
      }
    }
  }

  void size_buffers() {
    const auto& buffers = plan_.buffers[slot(rank_)];
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const Index bytes = blocked_volume(buffers[i].region) * options_.scalar_bytes;
      for (auto* slots : {&arena_.values, &arena_.restored, &arena_.gradients}) {
        MemorySlot& slot = (*slots)[i];
        slot.bytes = slot.from <= slot.to ? bytes : 0;
      }
    }
  }

  const Network& network_;
  const Plan& plan_;
  int rank_;
  ArenaOptions options_;
  std::vector<bool> exchanged_;  // by map_slot
  ActivationArena arena_;
};

// The lowest offset at which the slot meets none of those placed before.
Index free_offset(const MemorySlot& slot, const std::vector<const MemorySlot*>& placed) {
  std::vector<const MemorySlot*> in_the_way;
  for (const MemorySlot* other : placed) {
    if (other->meets(slot)) {
      in_the_way.push_back(other);
    }
  }
  std::sort(in_the_way.begin(), in_the_way.end(), [](const auto* a, const auto* b) {
    return a->offset < b->offset;
  });
  Index offset = 0;
  for (const MemorySlot* other : in_the_way) {
    if (offset + slot.bytes <= other->offset) {
      break;
    }
    offset = std::max(offset, other->offset + other->bytes);
  }
  return offset;
}

void place(ActivationArena& arena, bool apart) {
  std::vector<MemorySlot*> order;
  for (auto* slots : {&arena.values,
                      &arena.restored,
                      &arena.gradients,
                      &arena.sums,
                      &arena.sum_gradients,
                      &arena.winners}) {
    for (MemorySlot& slot : *slots) {
      slot.bytes = aligned(slot.bytes);
      if (slot.bytes > 0) {
        order.push_back(&slot);
      }
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const MemorySlot* a, const MemorySlot* b) {
    return a->bytes > b->bytes;
  });
  std::vector<const MemorySlot*> placed;
  for (MemorySlot* slot : order) {
    slot->offset = apart ? arena.bytes : free_offset(*slot, placed);
    arena.bytes = std::max(arena.bytes, slot->offset + slot->bytes);
    placed.push_back(slot);
  }
}

}  // namespace

ActivationArena activation_arena(const Network& network,
                                 const Plan& plan,
                                 int rank,
                                 const ArenaOptions& options) {
  ActivationArena arena = Lifetimes(network, plan, rank, options).compute();
  place(arena, options.keep_maps);
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (normalizes(network.layer(layer).operation)) {
      arena.sum_gradients[at] = arena.sums[at];  // in place
    }
  }
  return arena;
}

namespace {

Index kept(const std::vector<MemorySlot>& slots, int boundary) {
  Index bytes = 0;
  for (const MemorySlot& slot : slots) {
    bytes += slot.bytes > 0 && slot.from < boundary && slot.to > boundary ? slot.bytes : 0;
  }
  return bytes;
}

}  // namespace

ActivationKinds activation_kinds(const Network& network,
                                 const Plan& plan,
                                 int rank,
                                 const ArenaOptions& options) {
  const ActivationArena arena = activation_arena(network, plan, rank, options);
  const auto own = static_cast<std::size_t>(rank);
  ActivationKinds kinds;
  kinds.maps = kept(arena.values, network.size());
  kinds.sums = kept(arena.sums, network.size());
  kinds.winners = kept(arena.winners, network.size());
  kinds.turns = arena.bytes - kinds.maps - kinds.sums - kinds.winners;
  std::vector<bool> read(plan.buffers[own].size(), false);
  for (int layer = 0; layer < network.size(); ++layer) {
    const Operation& operation = network.layer(layer).operation;
    const Region& computed = plan.tile(layer, rank).computed;
    if (normalizes(operation)) {
      kinds.least += computed.volume() * options.scalar_bytes;
    }
    if (std::holds_alternative<MaxPool>(operation)) {
      kinds.least += computed.volume();
    }
    for (const int buffer : plan.read_from[own][static_cast<std::size_t>(layer)]) {
      if (buffer != kNoBuffer && backward_reads_inputs(operation)) {
        read[static_cast<std::size_t>(buffer)] = true;
      }
    }
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    const Buffer& buffer = plan.buffers[own][i];
    if (read[i]) {
      kinds.least += intersect(buffer.region, whole_map(network, buffer.map, plan.batch)).volume() *
                     options.scalar_bytes;
    }
  }
  return kinds;
}

}  // namespace partitioner
