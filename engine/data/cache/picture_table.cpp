#include "engine/data/cache/picture_table.h"

#include <algorithm>
#include <thread>

#include "engine/data/cache/picture_entry.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// Contents are counted in these, so that 32 bits are enough, which every processor adds to at once.
constexpr Index kUnitBytes = 64;

Index in_units(Index bytes) {
  return (bytes + kUnitBytes - 1) / kUnitBytes;
}

// A quarter more than pictures, so that chains of slots stay short.
Index slots_for(Index pictures) {
  return pictures + pictures / 4 + 16;
}

}  // namespace

struct PictureTable::Head {
  std::atomic<std::uint32_t> used;  // units
  std::atomic<std::uint32_t> stopped;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "processes share these");

Index PictureTable::entry_bytes(Index held_bytes) {
  return in_units(kEntryHeadBytes + held_bytes) * kUnitBytes;
}

Index PictureTable::memory_bytes(Index pictures, Index content_bytes) {
  const Index slots = slots_for(pictures) * static_cast<Index>(sizeof(Slot));
  return (1 + in_units(slots) + in_units(content_bytes)) * kUnitBytes;
}

PictureTable::PictureTable(std::span<std::byte> memory, Index pictures)
    : memory_(memory),
      slots_(reinterpret_cast<Slot*>(memory.data() + kUnitBytes)),
      count_(static_cast<std::size_t>(slots_for(pictures))),
      contents_(memory_bytes(pictures, 0)) {
  static_assert(sizeof(Head) <= kUnitBytes);
  expects(std::ssize(memory) >= contents_, "memory for all slots");
}

PictureTable::Head& PictureTable::head() const {
  return *reinterpret_cast<Head*>(memory_.data());
}

PictureTable::Slot* PictureTable::find(std::uint64_t key) const {
  constexpr int kLooks = 1 << 16;  // at a key that is being written
  auto at = static_cast<std::size_t>(key % count_);
  for (std::size_t tried = 0; tried < count_; ++tried, at = at + 1 == count_ ? 0 : at + 1) {
    Slot& slot = slots_[at];
    State free = State::Free;
    if (slot.state_.compare_exchange_strong(free, State::Naming, std::memory_order_acq_rel)) {
      slot.key_ = key;
      slot.state_.store(State::Empty, std::memory_order_release);
      return &slot;
    }
    for (int look = 0; slot.state() == State::Naming && look < kLooks; ++look) {
      std::this_thread::yield();
    }
    if (slot.state() != State::Naming && slot.key_ == key) {
      return &slot;
    }
  }
  return nullptr;
}

bool PictureTable::claim(Slot& slot, State state) {
  return (state == State::Empty || state == State::Filled) &&
         slot.state_.compare_exchange_strong(state, State::Claimed, std::memory_order_acq_rel);
}

void PictureTable::fill(Slot& slot, const Content& content) {
  slot.content_ = content;
  slot.state_.store(State::Filled, std::memory_order_release);
}

void PictureTable::leave(Slot& slot, State state) {
  slot.state_.store(state, std::memory_order_release);
}

std::optional<Index> PictureTable::allocate(Index bytes) const {
  const auto wanted = static_cast<std::uint64_t>(in_units(bytes));
  const auto room = static_cast<std::uint64_t>((std::ssize(memory_) - contents_) / kUnitBytes);
  std::uint32_t used = head().used.load();
  do {
    if (used + wanted > std::min<std::uint64_t>(room, UINT32_MAX)) {
      return std::nullopt;
    }
  } while (!head().used.compare_exchange_weak(used, static_cast<std::uint32_t>(used + wanted)));
  return contents_ + Index{used} * kUnitBytes;
}

void PictureTable::add_used(Index bytes) const {
  head().used.fetch_add(static_cast<std::uint32_t>(in_units(bytes)));
}

Index PictureTable::used_bytes() const {
  return Index{head().used.load()} * kUnitBytes;
}

bool PictureTable::first_to_stop() const {
  return head().stopped.exchange(1) == 0;
}

bool PictureTable::stopped() const {
  return head().stopped.load() != 0;
}

}  // namespace tessera::engine
