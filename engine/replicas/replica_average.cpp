#include "engine/replicas/replica_average.h"

#include <algorithm>

#include "engine/ops/parameters/packed_runs.h"

namespace tessera::engine {

using partitioner::Compression;

PackedBucket::PackedBucket(const OwnedElements& elements, const Compression& compression)
    : elements_(&elements), compression_(compression) {
  Array<float> numbers(elements.largest_bucket());
  for (int bucket = 0; bucket < elements.buckets(); ++bucket) {
    Index bytes = 0;
    for (const ElementValues<float>& run : elements.runs(bucket, numbers.span())) {
      bytes += packed_bytes(
          compression, {static_cast<Index>(run.values.size()), run.row}, sizeof(float));
    }
    bytes_.push_back(bytes == 0 ? 0 : bytes + packing_overhead_bytes(compression));
  }
}

Index PackedBucket::most_bytes() const {
  return bytes_.empty() ? 0 : *std::max_element(bytes_.begin(), bytes_.end());
}

void PackedBucket::pack(int bucket, std::span<float> numbers, std::span<std::byte> to) const {
  if (!to.empty()) {
    const auto head = static_cast<std::size_t>(packing_overhead_bytes(compression_));
    pack_runs(compression_,
              elements_->runs(bucket, numbers),
              PackedRuns<std::byte>{to.first(head), to.subspan(head)});
  }
}

void PackedBucket::add(int bucket,
                       std::span<const std::byte> from,
                       std::span<float> numbers) const {
  if (!from.empty()) {
    const auto head = static_cast<std::size_t>(packing_overhead_bytes(compression_));
    add_packed_runs(compression_,
                    PackedRuns<const std::byte>{from.first(head), from.subspan(head)},
                    elements_->runs(bucket, numbers));
  }
}

ReplicaAverage::ReplicaAverage(Peers& peers,
                               const OwnedElements& elements,
                               const Compression& compression)
    : peers_(&peers),
      elements_(&elements),
      compression_(compression),
      packed_(elements, compression) {
  if (compression != Compression::Exact) {
    residuals_ = Array<float>(elements.size());
    for (int peer = 0; peer < peers.size(); ++peer) {
      messages_.emplace_back(packed_.most_bytes());
    }
  }
}

void ReplicaAverage::average(int bucket, std::span<float> numbers) {
  if (compression_ == Compression::Exact) {
    peers_->average(numbers);
    return;
  }
  const std::span<float> residuals = elements_->part(bucket, residuals_);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    residuals[i] += numbers[i];
  }
  const auto bytes = static_cast<std::size_t>(packed_.bytes(bucket));
  std::vector<std::span<std::byte>> messages;
  for (Array<std::byte>& message : messages_) {
    messages.push_back(message.span().first(bytes));
  }
  packed_.pack(bucket, residuals, messages[static_cast<std::size_t>(peers_->index())]);
  peers_->gather(messages);
  std::fill(numbers.begin(), numbers.end(), 0.0F);
  for (const std::span<std::byte> message : messages) {
    packed_.add(bucket, message, numbers);
  }
  for (float& number : numbers) {
    number /= static_cast<float>(peers_->size());
  }
}

void ReplicaAverage::forget_residuals(int bucket) {
  if (is_compressed()) {
    const std::span<float> residuals = elements_->part(bucket, residuals_);
    std::fill(residuals.begin(), residuals.end(), 0.0F);
  }
}

Index ReplicaAverage::bytes() const {
  Index bytes = residuals_.bytes();
  for (const Array<std::byte>& message : messages_) {
    bytes += message.bytes();
  }
  return bytes;
}

}  // namespace tessera::engine
