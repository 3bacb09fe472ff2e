// What is decided by a partition for so many ranks that nothing makes its whole plan: a table for
// people, JSON for programs.

#pragma once

#include <string>
#include <vector>

#include "partitioner/memory/memory.h"
#include "partitioner/partition/partition.h"

namespace tessera::partitioner {

struct OutlinedPartition {
  std::string model;  // what the user calls it
  const Network& network;
  const Partition& partition;
  Index batch = 1;                       // images of a pass
  const std::vector<MemoryUse>& memory;  // of each rank, estimated
};

// Lines of at most 100 columns.
[[nodiscard]] std::string outline_text(const OutlinedPartition& outlined);

// One JSON object on one line; memory in bytes.
[[nodiscard]] std::string outline_json(const OutlinedPartition& outlined);

}  // namespace tessera::partitioner
