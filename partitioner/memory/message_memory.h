// Bytes that packed messages take up on each rank, of all ranks at once: a plan for many of them
// has more messages than anything else, and one look at each is enough.

#pragma once

#include <vector>

#include "partitioner/memory/memory.h"

namespace tessera::partitioner {

// [rank]; batch statistics included.
[[nodiscard]] std::vector<Index> message_bytes_of_ranks(const Plan& plan,
                                                        const MemoryOptions& options);

}  // namespace tessera::partitioner
