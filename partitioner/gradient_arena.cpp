#include "partitioner/gradient_arena.h"

#include <algorithm>
#include <numeric>

#include "partitioner/layout.h"

namespace partitioner {

namespace {

constexpr Index kAlignment = 16;  // scalars: a cache line of single precision

Index aligned(Index scalars) {
  return (scalars + kAlignment - 1) / kAlignment * kAlignment;
}

// A buffer that a map's layer writes is needed until that layer has run, one that a group reads of
// a map made elsewhere until the group has sent its gradient off.
std::vector<GradientSlot> lifetimes(const Network& network,
                                    const Plan& plan,
                                    int rank,
                                    bool image_gradient) {
  const auto own = static_cast<std::size_t>(rank);
  std::vector<GradientSlot> slots;
  for (const Buffer& buffer : plan.buffers[own]) {
    GradientSlot slot;
    const bool wanted = buffer.map != kImage || image_gradient;
    slot.scalars = wanted ? aligned(blocked_volume(buffer.region)) : 0;
    slot.from = kImage;
    slot.to = network.size();
    slots.push_back(slot);
  }
  const auto needed = [&](int buffer, int layer) {
    if (buffer != kNoBuffer) {
      GradientSlot& slot = slots[static_cast<std::size_t>(buffer)];
      slot.from = std::max(slot.from, layer);
      slot.to = std::min(slot.to, layer);
    }
  };
  for (int layer = 0; layer < network.size(); ++layer) {
    for (const int buffer : plan.read_from[own][static_cast<std::size_t>(layer)]) {
      needed(buffer, layer);
    }
  }
  for (int map = kImage; map < network.size(); ++map) {
    needed(plan.producer(rank, map), map);
  }
  needed(plan.producer(rank, network.size() - 1), network.size());
  return slots;
}

// The lowest offset at which the slot meets none of those placed before.
Index free_offset(const GradientSlot& slot, const std::vector<const GradientSlot*>& placed) {
  std::vector<const GradientSlot*> in_the_way;
  for (const GradientSlot* other : placed) {
    if (other->meets(slot)) {
      in_the_way.push_back(other);
    }
  }
  std::sort(in_the_way.begin(), in_the_way.end(), [](const auto* a, const auto* b) {
    return a->offset < b->offset;
  });
  Index offset = 0;
  for (const GradientSlot* other : in_the_way) {
    if (offset + slot.scalars <= other->offset) {
      break;
    }
    offset = std::max(offset, other->offset + other->scalars);
  }
  return offset;
}

}  // namespace

GradientArena gradient_arena(const Network& network,
                             const Plan& plan,
                             int rank,
                             bool image_gradient) {
  GradientArena arena;
  arena.slots = lifetimes(network, plan, rank, image_gradient);
  std::vector<std::size_t> order(arena.slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return arena.slots[a].scalars > arena.slots[b].scalars;
  });
  std::vector<const GradientSlot*> placed;
  for (const std::size_t i : order) {
    GradientSlot& slot = arena.slots[i];
    if (slot.scalars > 0) {
      slot.offset = free_offset(slot, placed);
      arena.scalars = std::max(arena.scalars, slot.offset + slot.scalars);
      placed.push_back(&slot);
    }
  }
  return arena;
}

}  // namespace partitioner
