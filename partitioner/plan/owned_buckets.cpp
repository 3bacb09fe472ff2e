#include "partitioner/plan/owned_buckets.h"

namespace tessera::partitioner {

std::vector<OwnedBucket> owned_buckets(const Plan& plan, int rank) {
  std::vector<OwnedBucket> buckets;
  for (const BucketPlan& bucket : plan.buckets) {
    OwnedBucket& owned = buckets.emplace_back();
    for (const int number : bucket.parameters) {
      const ParameterPlan& parameter = plan.parameters[static_cast<std::size_t>(number)];
      for (const Range& run : parameter.owned[static_cast<std::size_t>(rank)]) {
        owned.elements += run.size();
        owned.bytes +=
            packed_bytes(plan.sync_compression, {run.size(), parameter.shape.row}, kSingleBytes);
      }
    }
    owned.bytes += owned.bytes > 0 ? packing_overhead_bytes(plan.sync_compression) : 0;
  }
  return buckets;
}

OwnedBucket all_owned(const Plan& plan, int rank) {
  OwnedBucket all;
  for (const OwnedBucket& bucket : owned_buckets(plan, rank)) {
    all.elements += bucket.elements;
    all.bytes += bucket.bytes;
  }
  return all;
}

std::vector<int> peers_of(const Plan& plan, int rank) {
  const int stride = plan.ranks_of_copy();
  std::vector<int> ranks;
  for (int peer = rank % stride; peer < plan.ranks; peer += stride) {
    ranks.push_back(peer);
  }
  return ranks;
}

}  // namespace tessera::partitioner
