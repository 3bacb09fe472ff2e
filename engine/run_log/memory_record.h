// The memory of each rank of a run as planned and as measured.

#pragma once

#include <string>
#include <vector>

#include "engine/execution/execution.h"
#include "engine/run_files/rank_memory.h"

namespace tessera::engine {

// What a rank has allocated for its network, by kind; without pictures.
[[nodiscard]] partitioner::MemoryUse measured_memory(const ExecutionMemory& execution,
                                                     Index optimizer_bytes);

// Of this rank, as far as it can be measured.
struct MeasuredMemory {
  partitioner::MemoryUse use;
  Index resident_for_others = 0;  // memory that ranks share, beyond this one's share
};

// Memory of each rank as it was planned before the run, beside what was measured. All ranks call
// this together.
[[nodiscard]] std::vector<RankMemory> memory_of_ranks(
    const std::vector<partitioner::MemoryUse>& planned,
    const MeasuredMemory& measured,
    const Communicator& communicator);

// A table, for people.
[[nodiscard]] std::string memory_table(const std::vector<RankMemory>& ranks);

}  // namespace tessera::engine
