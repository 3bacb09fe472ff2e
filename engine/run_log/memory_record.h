// DIR/memory.json of a run: the memory of each rank as planned and as measured.

#pragma once

#include <string>
#include <vector>

#include "engine/execution/execution.h"
#include "partitioner/memory/memory.h"

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
// this together; the text is on rank 0.
[[nodiscard]] std::string memory_json(const std::vector<partitioner::MemoryUse>& planned,
                                      const MeasuredMemory& measured,
                                      const Communicator& communicator);

// The same file as a table, for people.
[[nodiscard]] std::string memory_table(const std::string& json);

}  // namespace tessera::engine
