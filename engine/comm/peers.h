// Ranks that have the same part of several things of one kind, such as replicas of a model: one
// rank of each, in their order. They hold arrays of the same sizes.
//
// All of them call average(), gather() and exchange() together, in the same order.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/tags.h"

namespace tessera::engine {

class Peers {
 public:
  // `ranks` of the communicator, this one among them. Two that are in use at the same time on the
  // same ranks have different tags. The communicator must outlive it.
  Peers(const Communicator& communicator, std::vector<int> ranks, int tag = kPeersTag);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }

  // Assigns the mean over all, which is rounded once: the same bits on all, and what they have in
  // common stays as it is. Each makes its share and sends that to the others.
  void average(std::span<float> values);

  // Assigns each one's bytes to all[i]; `mine` is all[index()] already. As many of each.
  void gather(std::span<const std::span<std::byte>> all);

  // Sends to one of the others what that one receives; and the other way.
  void exchange(int other, std::span<const std::byte> sent, std::span<std::byte> received);
  void send(int to, std::span<const std::byte> bytes);
  void receive(int from, std::span<std::byte> bytes);

  void post_send(Requests& requests, int to, std::span<const std::byte> bytes) const;
  void post_receive(Requests& requests, int from, std::span<std::byte> bytes) const;

  // The size of what average() works in.
  [[nodiscard]] std::ptrdiff_t bytes() const {
    return static_cast<std::ptrdiff_t>(arrived_.capacity() * sizeof(float));
  }

 private:
  const Communicator* communicator_;
  std::vector<int> ranks_;
  int tag_;
  int index_ = 0;
  std::vector<float> arrived_;
};

}  // namespace tessera::engine
