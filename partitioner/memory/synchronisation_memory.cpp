#include "partitioner/memory/synchronisation_memory.h"

#include <algorithm>

#include "partitioner/plan/owned_buckets.h"

namespace tessera::partitioner {

namespace {

// What a rank trains: parameters that it holds, running statistics, the optimizer's state.
struct Trained {
  Index elements = 0;
  Index largest_array = 0;

  void add(Index count) {
    elements += count;
    largest_array = std::max(largest_array, count);
  }
};

Trained trained_by(const Plan& plan, int rank, const TrainedArrays& arrays) {
  const auto own = static_cast<std::size_t>(rank);
  Trained trained;
  for (const ParameterPlan& parameter : plan.parameters) {
    trained.add(parameter.required[own].size() * parameter.shape.row);
    Index owned = 0;
    for (const Range& run : parameter.owned[own]) {
      owned += run.size();
    }
    trained.add(is_learnt(parameter) ? owned : 0);
    trained.add(is_learnt(parameter) && arrays.adam ? owned : 0);
    trained.add(!parameter.frozen && arrays.averages ? owned : 0);
  }
  return trained;
}

}  // namespace

Index synchronisation_bytes(const Plan& plan, int rank, const MemoryOptions& options) {
  if (!plan.replicas.independent() || !options.training) {
    return 0;
  }
  const Trained trained = trained_by(plan, rank, options.trained);
  OwnedBucket largest;
  for (const OwnedBucket& bucket : owned_buckets(plan, rank)) {
    largest.elements = std::max(largest.elements, bucket.elements);
    largest.bytes = std::max(largest.bytes, bucket.bytes);
  }
  const Index owned = all_owned(plan, rank).elements;
  const bool compressed = plan.sync_compression != Compression::Exact;
  Index elements = trained.elements + largest.elements +
                   std::max(trained.largest_array, largest.elements);  // while they are summed
  Index bytes = 0;
  switch (plan.replicas.sync.mode) {
    case SyncMode::Local:
    case SyncMode::PostLocal:
      elements += compressed ? 2 * owned : 0;
      bytes += compressed ? plan.replicas.count * largest.bytes : 0;
      break;
    case SyncMode::Gossip:
      elements += largest.elements;
      break;
    case SyncMode::ParameterRank: {
      const bool has_parameters = plan.copy_of(rank) == 0;
      elements += 2 * (plan.replicas.sync.steps + 1) * owned;
      elements += has_parameters || compressed ? owned : 0;
      bytes += (has_parameters ? plan.replicas.count - 1 : 1) * largest.bytes;
      break;
    }
    case SyncMode::EveryStep:
      break;
  }
  return elements * kSingleBytes + bytes;
}

}  // namespace tessera::partitioner
