// Which pictures a cache has, in memory that the ranks of a machine share: a slot for each picture,
// which one rank at a time may fill, and room for contents behind the slots.
//
// A slot is found by a key of 64 bits; zeroed memory is an empty table. All functions may be called
// by several threads of several processes. Nothing here waits for another rank but for the moment
// in which it writes a key.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "partitioner/base/region.h"

namespace tessera::engine {

class PictureTable {
 public:
  enum class State : std::uint32_t {
    Free,     // no picture's yet
    Naming,   // its key is being written
    Claimed,  // somebody is filling it
    Empty,    // who claimed it has left it as it was
    Filled,   // what it says holds
    Outside   // the cache does not take this picture
  };

  // What a slot says of its picture, once it is filled.
  struct Content {
    std::uint64_t first = 0;  // where it lies; what that means is the cache's affair
    std::uint64_t second = 0;
    std::uint64_t stamp = 0;
    std::uint32_t reduction = 0;
  };

  class Slot {
   public:
    [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
    // As long as it is filled.
    [[nodiscard]] const Content& content() const { return content_; }

   private:
    friend class PictureTable;
    std::atomic<State> state_;
    std::uint64_t key_;
    Content content_;
  };

  // What a picture of so many bytes takes of the room for contents.
  [[nodiscard]] static Index entry_bytes(Index held_bytes);
  // Memory for a table of so many pictures and so many bytes of contents.
  [[nodiscard]] static Index memory_bytes(Index pictures, Index content_bytes);

  // In zeroed memory of memory_bytes(); all processes give the same number of pictures.
  PictureTable(std::span<std::byte> memory, Index pictures);

  // The slot of a key, made where there is none; null where there is no slot left.
  [[nodiscard]] Slot* find(std::uint64_t key) const;

  // Whether the slot, which was in `state`, is this caller's to fill: then one of the following has
  // to be called.
  [[nodiscard]] static bool claim(Slot& slot, State state);
  static void fill(Slot& slot, const Content& content);
  // Leaves it in one of the other states.
  static void leave(Slot& slot, State state);

  // A part of the room for contents, counted from the beginning of the memory; nothing where too
  // little is left.
  [[nodiscard]] std::optional<Index> allocate(Index bytes) const;

  // Counts bytes of contents that lie elsewhere.
  void add_used(Index bytes) const;
  // Bytes of contents, of all processes.
  [[nodiscard]] Index used_bytes() const;

  // Whether no process has called this before.
  [[nodiscard]] bool first_to_stop() const;
  [[nodiscard]] bool stopped() const;

 private:
  struct Head;

  [[nodiscard]] Head& head() const;

  std::span<std::byte> memory_;
  Slot* slots_;
  std::size_t count_;
  Index contents_;  // where they begin
};

}  // namespace tessera::engine
