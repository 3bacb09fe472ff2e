#include "partitioner/memory/activation_arena.h"

#include <algorithm>
#include <map>
#include <utility>

#include "partitioner/memory/activation_lifetimes.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

constexpr Index kAlignment = 64;  // a cache line

Index aligned(Index bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Placing {
  MemorySlot* slot;
  Index peak;  // bytes that are needed at once at some time of the slot, at most

  [[nodiscard]] int duration() const { return slot->to - slot->from; }
};

// Sorted into an order to place them in: each goes where those before it leave room.
using Order = bool (*)(const Placing&, const Placing&);

bool larger(const Placing& a, const Placing& b) {
  return a.slot->bytes > b.slot->bytes;
}
bool longer(const Placing& a, const Placing& b) {
  return a.duration() > b.duration();
}

// Greedy by size, by duration, and by breadth (Pisarchyk and Lee 2020), where the times of the
// largest need come first. None of them is the best for all networks.
constexpr Order kOrders[] = {larger,
                             [](const Placing& a, const Placing& b) {
                               return a.peak != b.peak ? a.peak > b.peak : larger(a, b);
                             },
                             [](const Placing& a, const Placing& b) {
                               return a.peak != b.peak ? a.peak > b.peak : longer(a, b);
                             },
                             longer};

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

// Gives each slot an offset, in the order given; the bytes of all.
Index place(const std::vector<Placing>& slots) {
  Index bytes = 0;
  std::vector<const MemorySlot*> placed;
  placed.reserve(slots.size());
  for (const Placing& placing : slots) {
    placing.slot->offset = free_offset(*placing.slot, placed);
    bytes = std::max(bytes, placing.slot->offset + placing.slot->bytes);
    placed.push_back(placing.slot);
  }
  return bytes;
}

Index place_apart(const std::vector<Placing>& slots) {
  Index bytes = 0;
  for (const Placing& placing : slots) {
    placing.slot->offset = bytes;
    bytes += placing.slot->bytes;
  }
  return bytes;
}

std::vector<Placing> wanted_slots(ActivationArena& arena) {
  std::vector<Placing> wanted;
  const auto add = [&wanted](auto& slots) {
    for (MemorySlot& slot : slots) {
      slot.bytes = aligned(slot.bytes);
      if (slot.bytes > 0) {
        wanted.push_back({&slot, 0});
      }
    }
  };
  for (auto* slots : {&arena.values, &arena.recomputed, &arena.restored, &arena.gradients}) {
    add(*slots);
  }
  for (auto* slots : {&arena.pre_activations,
                      &arena.recomputed_pre_activations,
                      &arena.pre_activation_gradients,
                      &arena.argmax,
                      &arena.recomputed_argmax}) {
    add(*slots);
  }
  return wanted;
}

// Finds the peak of each slot. Returns the most of all, which no placing can be below.
Index find_peaks(std::vector<Placing>& slots) {
  Index most = 0;
  for (const Placing& time : slots) {  // a peak begins where some slot does
    const int now = time.slot->from;
    const auto is_there = [now](const Placing& placing) {
      return placing.slot->from <= now && now <= placing.slot->to;
    };
    Index bytes = 0;
    for (const Placing& placing : slots) {
      bytes += is_there(placing) ? placing.slot->bytes : 0;
    }
    for (Placing& placing : slots) {
      placing.peak = is_there(placing) ? std::max(placing.peak, bytes) : placing.peak;
    }
    most = std::max(most, bytes);
  }
  return most;
}

void place(ActivationArena& arena) {
  std::vector<Placing> slots = wanted_slots(arena);
  const Index least = find_peaks(slots);
  Order best = nullptr;
  for (const Order order : kOrders) {
    std::vector<Placing> ordered = slots;
    std::stable_sort(ordered.begin(), ordered.end(), order);
    const Index bytes = place(ordered);
    if (best == nullptr || bytes < arena.bytes) {
      best = order;
      arena.bytes = bytes;
    }
    if (bytes == least) {
      return;
    }
  }
  std::stable_sort(slots.begin(), slots.end(), best);
  arena.bytes = place(slots);
}

void lay_out(ActivationArena& arena, const ArenaOptions& options) {
  if (options.keep_maps) {
    arena.bytes = place_apart(wanted_slots(arena));
  } else {
    place(arena);
  }
}

}  // namespace

ActivationArena activation_arena(const Network& network,
                                 const Plan& plan,
                                 int rank,
                                 const ArenaOptions& options) {
  ActivationArena arena = activation_lifetimes(network, plan, rank, options);
  lay_out(arena, options);
  for (int layer = 0; layer < network.size(); ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (takes_batch_statistics(network.layer(layer))) {
      const MemorySlot& again = arena.recomputed_pre_activations[at];
      arena.pre_activation_gradients[at] =
          again.bytes > 0 ? again : arena.pre_activations[at];  // in place
    }
  }
  return arena;
}

std::vector<Index> arena_bytes_of_ranks(const Network& network,
                                        const Plan& plan,
                                        const ArenaOptions& options) {
  std::map<std::vector<Index>, Index> known;  // by bytes and times of all slots
  std::vector<Index> bytes;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    ActivationArena arena = activation_lifetimes(network, plan, rank, options);
    std::vector<Index> wants;
    for (const Placing& placing : wanted_slots(arena)) {
      wants.insert(wants.end(), {placing.slot->bytes, placing.slot->from, placing.slot->to});
    }
    const auto [found, is_new] = known.try_emplace(std::move(wants));
    if (is_new) {
      lay_out(arena, options);
      found->second = arena.bytes;
    }
    bytes.push_back(found->second);
  }
  return bytes;
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
  kinds.maps = kept(arena.values.elements(), network.size());
  kinds.pre_activations = kept(arena.pre_activations, network.size());
  kinds.argmax = kept(arena.argmax, network.size());
  kinds.turns = arena.bytes - kinds.maps - kinds.pre_activations - kinds.argmax;
  IndexedVector<BufferIndex, bool> read(plan.buffers[own].size(), false);
  for (int layer = 0; layer < network.size(); ++layer) {
    const LayerSpec& spec = network.layer(layer);
    const Region& computed = plan.tile(layer, rank).computed;
    if (takes_batch_statistics(spec)) {
      kinds.least += computed.volume() * options.scalar_bytes;
    }
    if (layer_traits(spec.operation).keeps_argmax && spec.has_backward) {
      kinds.least += computed.volume();
    }
    for (const BufferIndex buffer : plan.read_from[own][static_cast<std::size_t>(layer)]) {
      if (buffer != kNoBuffer && backward_reads_inputs(spec)) {
        read[buffer] = true;
      }
    }
  }
  for (const BufferIndex i : read.indices()) {
    const Buffer& buffer = plan.buffers[own][i];
    if (read[i]) {
      kinds.least += intersect(buffer.region, whole_map(network, buffer.map, plan.batch)).volume() *
                     options.scalar_bytes;
    }
  }
  return kinds;
}

}  // namespace tessera::partitioner
