// Uneven tiles and shares that follow the speed of devices while training runs (--rebalance).

#pragma once

#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "partitioner/search/rebalancing.h"

namespace tessera::engine {

// Looks at how long ranks compute, and finds another partition where that is better. Rank 0
// searches; all ranks make it together.
class Rebalancer {
 public:
  // All must outlive it.
  Rebalancer(const partitioner::Network& network,
             const PartitionChoice& choice,
             const Workload& workload,
             const Communicator& communicator);

  // After a window of steps by `current`: the partition to go on with, where it is another one.
  // `computing_s`: of a mean step on this rank, without exchanging and waiting; 0: it took no part.
  // All ranks call this together; errors are AgreedErrors.
  [[nodiscard]] std::optional<partitioner::Partition> next(const partitioner::Partition& current,
                                                           double computing_s,
                                                           Index steps_left);

  // Why, in a line, after another one was found; rank 0's.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  [[nodiscard]] std::optional<partitioner::Partition> search(const partitioner::Partition& current,
                                                             const std::vector<double>& measured_s,
                                                             Index steps_left);
  [[nodiscard]] double step_seconds(const partitioner::ClusterProfile& cluster,
                                    const partitioner::Partition& partition) const;

  const partitioner::Network& network_;
  const PartitionChoice& choice_;
  Workload workload_;
  const Communicator& communicator_;
  partitioner::ClusterProfile cluster_;  // rank 0
  partitioner::SlownessWatch watch_;     // rank 0
  std::string reason_;
};

}  // namespace tessera::engine
