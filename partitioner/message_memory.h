// Bytes that packed messages take up on each rank, of all ranks at once: a plan for many of them
// has more messages than anything else, and one look at each is enough.

#pragma once

#include <vector>

#include "partitioner/memory.h"

namespace partitioner {

// [rank]; sums of batch normalisation included.
[[nodiscard]] std::vector<Index> message_bytes_of_ranks(const Network& network,
                                                        const Plan& plan,
                                                        const MemoryOptions& options);

// Bytes that `rank` receives of the other ranks' per-channel sums in a training pass through a
// layer with batch normalisation: count, mean and squares on the way forward, two sums on the way
// back, all in double precision.
[[nodiscard]] Index channel_sum_bytes(const Network& network,
                                      const Plan& plan,
                                      int layer,
                                      int rank);

}  // namespace partitioner
