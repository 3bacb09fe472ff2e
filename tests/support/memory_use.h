// Planned memory of one rank.

#pragma once

#include "partitioner/memory/memory.h"

namespace tessera::tests {

inline partitioner::MemoryUse planned_memory(const partitioner::Network& network,
                                             const partitioner::Plan& plan,
                                             int rank,
                                             const partitioner::MemoryOptions& options) {
  return planned_memory_of_ranks(network, plan, options, {}, {})[static_cast<std::size_t>(rank)];
}

}  // namespace tessera::tests
