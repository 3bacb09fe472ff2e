// Numbers of a bucket, such as gradients, averaged over replicas: exactly, or of compressed
// messages with error feedback, where what a replica's message leaves out is part of what it sends
// the next time.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/comm/peers.h"
#include "engine/replicas/owned_elements.h"
#include "partitioner/partition/compression.h"

namespace tessera::engine {

// A message of a bucket's numbers, packed.
class PackedBucket {
 public:
  PackedBucket(const OwnedElements& elements, const partitioner::Compression& compression);

  [[nodiscard]] Index bytes(int bucket) const { return bytes_[static_cast<std::size_t>(bucket)]; }
  [[nodiscard]] Index most_bytes() const;
  // As pack_runs() and add_packed_runs() of ops/parameters/packed_runs.h.
  void pack(int bucket, std::span<float> numbers, std::span<std::byte> to) const;
  void add(int bucket, std::span<const std::byte> from, std::span<float> numbers) const;

 private:
  const OwnedElements* elements_;
  partitioner::Compression compression_;
  std::vector<Index> bytes_;  // by bucket
};

class ReplicaAverage {
 public:
  // All must outlive it.
  ReplicaAverage(Peers& peers,
                 const OwnedElements& elements,
                 const partitioner::Compression& compression);

  // Assigns the average of what all replicas send, the same bits on all.
  void average(int bucket, std::span<float> numbers);

  // What was not sent so far; nothing where all is exact.
  [[nodiscard]] std::span<float> residuals() { return residuals_.span(); }
  // Where other numbers than before are averaged from now on.
  void forget_residuals(int bucket);
  [[nodiscard]] bool is_compressed() const {
    return compression_ != partitioner::Compression::Exact;
  }
  [[nodiscard]] Index bytes() const;

 private:
  Peers* peers_;
  const OwnedElements* elements_;
  partitioner::Compression compression_;
  PackedBucket packed_;
  Array<float> residuals_;
  std::vector<Array<std::byte>> messages_;  // of each peer
};

}  // namespace tessera::engine
