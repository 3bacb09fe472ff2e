// The steps of a training run beside what was predicted for them. Rank 0 keeps it.

#pragma once

#include <string>
#include <vector>

#include "engine/session/planning.h"

namespace tessera::engine {

class StepComparison {
 public:
  // Adds a step of so many seconds.
  void add(double step_s);

  // "step: predicted 1.32 s, measured 1.40 s (median of 120)" with a line break; empty where no
  // profile of the cluster is known, or no step was measured.
  [[nodiscard]] std::string line(const partitioner::Network& network,
                                 const PartitionRequest& request,
                                 const Workload& workload,
                                 const partitioner::Partition& partition) const;

 private:
  std::vector<double> latest_s_;  // the last ones
  std::size_t next_ = 0;          // which of them the next one replaces
};

}  // namespace tessera::engine
