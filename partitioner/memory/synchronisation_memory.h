// Bytes that a rank takes to synchronise independent replicas: messages, copies of parameters that
// are not the current ones, and a copy of all that it trains while replicas show what they have in
// common, for a checkpoint or a test.

#pragma once

#include "partitioner/memory/memory.h"

namespace tessera::partitioner {

// 0 where replicas are not apart.
[[nodiscard]] Index synchronisation_bytes(const Plan& plan, int rank, const MemoryOptions& options);

}  // namespace tessera::partitioner
