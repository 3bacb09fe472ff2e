// Each rank's bytes on every rank, or among some ranks that follow each other, in two rounds that
// are started and finished separately: first how many bytes each rank has, then these.

#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/comm/communicator.h"

namespace tessera::engine {

class Gathering {
 public:
  static constexpr int kRounds = 2;

  explicit Gathering(const Communicator& communicator);
  // Among ranks [first, first + count), of which this one is.
  Gathering(const Communicator& communicator, int first, int count);

  // What this rank has for all others in the rounds to come.
  void set(std::span<const std::byte> mine);
  // All ranks start and finish round 0, then round 1, together.
  void start(int round);
  void finish() { requests_.wait_all(); }

  // In rank order, after round 1; nothing of ranks that do not take part.
  [[nodiscard]] const std::vector<std::vector<std::byte>>& all() const { return all_; }
  [[nodiscard]] std::vector<std::vector<std::byte>> take() { return std::move(all_); }

 private:
  const Communicator* communicator_;
  std::size_t first_;
  std::size_t end_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::vector<std::byte>> all_;
  Requests requests_;
};

}  // namespace tessera::engine
