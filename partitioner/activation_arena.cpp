#include "partitioner/activation_arena.h"

#include <algorithm>
#include <numeric>

#include "partitioner/activation_lifetimes.h"
#include "partitioner/layer_memory.h"

namespace partitioner {

namespace {

constexpr Index kAlignment = 64;  // a cache line

Index aligned(Index bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

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
                      &arena.recomputed,
                      &arena.restored,
                      &arena.gradients,
                      &arena.sums,
                      &arena.recomputed_sums,
                      &arena.sum_gradients,
                      &arena.winners,
                      &arena.recomputed_winners}) {
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
  ActivationArena arena = activation_lifetimes(network, plan, rank, options);
  place(arena, options.keep_maps);
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (normalizes(network.layer(layer).operation)) {
      const MemorySlot& again = arena.recomputed_sums[at];
      arena.sum_gradients[at] = again.bytes > 0 ? again : arena.sums[at];  // in place
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
