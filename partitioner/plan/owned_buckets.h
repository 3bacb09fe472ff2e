// What a rank owns of each bucket of parameters, as independent replicas send it to each other: one
// message for a bucket, whose runs are those that the rank owns.

#pragma once

#include <vector>

#include "partitioner/plan/plan.h"

namespace tessera::partitioner {

struct OwnedBucket {
  Index elements = 0;
  Index bytes = 0;  // of a message, in single precision, compressed as replicas do it
};

// In the order of Plan::buckets.
[[nodiscard]] std::vector<OwnedBucket> owned_buckets(const Plan& plan, int rank);

// The sum over all buckets.
[[nodiscard]] OwnedBucket all_owned(const Plan& plan, int rank);

// The ranks with the same part of each replica as a rank of the first one has, in their order.
[[nodiscard]] std::vector<int> peers_of(const Plan& plan, int rank);

}  // namespace tessera::partitioner
