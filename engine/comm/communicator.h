// A set of ranks that send each other bytes. Everything is non-blocking, and waiting gives the
// processor away: blocking calls of MPI spin, and a rank that waits on a machine with few cores
// would take the time of the one it waits for.
//
// A default-made Communicator is one rank alone: it needs no MPI.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/comm/patience.h"
#include "partitioner/base/region.h"

namespace tessera::engine {

// Receives and sends under way. Their memory must stay until they are done.
class Requests {
 public:
  Requests();
  ~Requests();
  Requests(Requests&&) noexcept;
  Requests& operator=(Requests&&) noexcept;

  // The number, counted from 0 in the order of posting, of a request that is done and was not named
  // before; -1 when all have been.
  int wait_any();
  void wait_all();
  // Whether all are done: a look, without waiting. Not while wait_any() has named only some.
  [[nodiscard]] bool all_done();

 private:
  friend class Communicator;
  struct State;
  std::unique_ptr<State> state_;
};

// Seconds spent on exchanging: packing, waiting, unpacking.
struct ExchangeTimes {
  double maps_s = 0;        // and their gradients
  double statistics_s = 0;  // batch statistics, and the loss of a step
  double reduction_s = 0;   // gradient reduction, their norm, and parameter all-gather

  [[nodiscard]] double total_s() const { return maps_s + statistics_s + reduction_s; }
  // What came after `before` was noted.
  [[nodiscard]] ExchangeTimes since(const ExchangeTimes& before) const {
    return {maps_s - before.maps_s,
            statistics_s - before.statistics_s,
            reduction_s - before.reduction_s};
  }
};

class Communicator {
 public:
  Communicator() = default;

  // All ranks that mpiexec started. Requires a living MpiSession. Waits are noted in the pulse,
  // which must outlive all that communicates; null: nowhere.
  static Communicator world(Pulse* pulse = nullptr);
  // This rank alone.
  static Communicator self() { return {}; }
  // The same ranks, for a thread that waits beside the one that the pulse tells of.
  [[nodiscard]] Communicator for_another_thread() const;

  // The same ranks, of which only those that are listed take part: they call together what all
  // ranks call together, and the others know nothing of it. Rank 0 is one of them. What is gathered
  // has nothing from the others, and of_ranks() a value made by default.
  [[nodiscard]] Communicator among(const std::vector<int>& ranks) const;
  [[nodiscard]] bool takes_part(int rank) const {
    return absent_.empty() || !absent_[static_cast<std::size_t>(rank)];
  }

  // The same, for a rank that waits long: it looks so rarely that waiting takes next to nothing of
  // the processor, and sees what comes some hundredths of a second late.
  [[nodiscard]] Communicator resting() const;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] Pulse* pulse() const { return pulse_; }

  // Messages between two ranks with the same tag arrive in the order in which they were posted.
  void post_receive(Requests& requests, int from, int tag, std::span<std::byte> bytes) const;
  void post_send(Requests& requests, int to, int tag, std::span<const std::byte> bytes) const;

  // Each rank's bytes on every rank, in rank order. All ranks call this together.
  [[nodiscard]] std::vector<std::vector<std::byte>> gather_all(
      std::span<const std::byte> mine) const;

  // The text that the lowest rank with one gives, on all ranks; nothing if no rank has one. All
  // ranks call this together: it is how an error of one becomes an orderly end of all.
  [[nodiscard]] std::optional<std::string> agree(const std::optional<std::string>& mine) const;

  void barrier() const;

  // Ranks that run on the same machine as this one, itself included. All ranks call this together.
  [[nodiscard]] int ranks_on_this_machine() const;

  // A plain value of each rank, in rank order, on all ranks. All ranks call this together.
  template <class Value>
  [[nodiscard]] std::vector<Value> of_ranks(const Value& mine) const {
    const auto all = gather_all(std::as_bytes(std::span<const Value>(&mine, 1)));
    std::vector<Value> values(all.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (takes_part(static_cast<int>(rank))) {
        std::memcpy(&values[rank], all[rank].data(), sizeof(Value));
      }
    }
    return values;
  }

  // The same for as many values as each rank has.
  template <class Value>
  [[nodiscard]] std::vector<std::vector<Value>> of_ranks(const std::vector<Value>& mine) const {
    std::vector<std::vector<Value>> values;
    for (const std::vector<std::byte>& bytes : gather_all(std::as_bytes(std::span(mine)))) {
      const auto* const first = reinterpret_cast<const Value*>(bytes.data());
      values.emplace_back(first, first + bytes.size() / sizeof(Value));
    }
    return values;
  }

  // A plain value of rank 0, on all ranks. All ranks call this together.
  template <class Value>
  [[nodiscard]] Value share(const Value& mine) const {
    Value theirs;
    std::memcpy(&theirs,
                gather_all(std::as_bytes(std::span<const Value>(&mine, 1)))[0].data(),
                sizeof(Value));
    return theirs;
  }

  // Bytes that were posted to be sent by this communicator or by transfers made of it.
  [[nodiscard]] std::int64_t sent_bytes() const { return sent_bytes_; }
  void count_sent(std::size_t bytes) const { sent_bytes_ += static_cast<std::int64_t>(bytes); }

  // Seconds that ExchangeTimers of this communicator have run, by what they were for.
  [[nodiscard]] const ExchangeTimes& exchange_times() const { return exchange_times_; }

 private:
  friend class ExchangeTimer;
  int rank_ = 0;
  int size_ = 1;
  Pulse* pulse_ = nullptr;
  std::vector<bool> absent_;  // [rank]; empty: all take part
  std::chrono::microseconds longest_pause_ = Patience::kUsualPause;
  mutable ExchangeTimes exchange_times_;  // of bookkeeping, not of what it communicates
  mutable std::int64_t sent_bytes_ = 0;
};

// Counts the time from its making to its end as spent on exchanging.
class ExchangeTimer {
 public:
  // `purpose` is a part of ExchangeTimes.
  ExchangeTimer(const Communicator& communicator, double ExchangeTimes::*purpose)
      : communicator_(communicator), purpose_(purpose), start_(std::chrono::steady_clock::now()) {}
  ~ExchangeTimer() {
    communicator_.exchange_times_.*purpose_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  ExchangeTimer(const ExchangeTimer&) = delete;
  ExchangeTimer& operator=(const ExchangeTimer&) = delete;

 private:
  const Communicator& communicator_;
  double ExchangeTimes::*purpose_;
  std::chrono::steady_clock::time_point start_;
};

// The bytes of an array of plain values.
template <class T>
[[nodiscard]] std::span<std::byte> bytes_of(T* values, Index count) {
  return std::as_writable_bytes(std::span<T>(values, static_cast<std::size_t>(count)));
}
template <class T>
[[nodiscard]] std::span<const std::byte> bytes_of(const T* values, Index count) {
  return std::as_bytes(std::span<const T>(values, static_cast<std::size_t>(count)));
}

}  // namespace tessera::engine
