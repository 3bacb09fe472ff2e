// The partition that the ranks of a run would search, found without them.

#pragma once

#include <string>
#include <vector>

#include "engine/session/training_request.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

// Where the state of each step is kept, for ranks on these devices, [rank]. Of multi-scale training
// it is that of the largest size, as PartitionRequest::found has it. What the pictures take of
// memory is not known. Throws InputError.
[[nodiscard]] partitioner::Partition spare_partition(const TrainingRequest& request,
                                                     const std::vector<std::string>& devices);

}  // namespace tessera::engine
