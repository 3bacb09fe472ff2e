// Uneven tiles and shares that follow the speed of devices while training runs (--rebalance).

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/session/planning.h"
#include "engine/session/training_request.h"
#include "partitioner/search/rebalancing.h"

namespace tessera::engine {

// Whether training on several devices is to follow their speed though nobody has asked for it:
// where a search has cut the network by what a profile says of these devices, and nothing that is
// asked for needs the partition, or steps of one length, to stay. `several_sizes`: the model file
// asks for multi-scale training.
[[nodiscard]] bool should_rebalance(const TrainingRequest& request, bool several_sizes);

// Looks at how long ranks compute, and finds another partition where that is better. Rank 0
// searches; all ranks make it together.
class Rebalancer {
 public:
  // Searches for the network that learns in full. All must outlive it.
  Rebalancer(const partitioner::Network& network,
             const PartitionRequest& request,
             const Workload& workload,
             const Communicator& communicator,
             const SessionObserver& observer);

  // After a window of steps of `trained` by `current`: the partition to go on with, where it is
  // another one. `computing_s`: of a mean step on this rank, without exchanging and waiting; 0: it
  // took no part. All ranks call this together; errors are AgreedErrors.
  [[nodiscard]] std::optional<partitioner::Partition> next(const partitioner::Network& trained,
                                                           const partitioner::Partition& current,
                                                           double computing_s,
                                                           Index steps_left);

  // Why, in a line, after another one was found; rank 0's.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  [[nodiscard]] std::optional<partitioner::Partition> search(const partitioner::Network& trained,
                                                             const partitioner::Partition& current,
                                                             const std::vector<double>& measured_s,
                                                             Index steps_left);
  [[nodiscard]] partitioner::Partition best_for(const partitioner::ClusterProfile& cluster,
                                                const partitioner::Partition& current) const;
  [[nodiscard]] double step_seconds(const partitioner::ClusterProfile& cluster,
                                    const partitioner::Partition& partition) const;

  const partitioner::Network& network_;
  const PartitionRequest& request_;
  Workload workload_;
  const Communicator& communicator_;
  partitioner::ClusterProfile cluster_;  // rank 0
  partitioner::SlownessWatch watch_;     // rank 0
  std::string reason_;
};

// Steps of a run that are taken one after the other, by one partition.
struct StepWindow {
  Index steps_done = 0;  // of the run
  bool enough = false;   // nothing is left to do
  double step_s = 0;     // of a mean step but the first, in which a partition warms up; 0: no step
  double computing_s = 0;  // of it on this rank, as Rebalancer::next() takes it
  const partitioner::Network* network = nullptr;  // as it was in them
};

// What a training run offers. All ranks call its functions together.
struct RebalancedRun {
  Index first_step = 0;  // that is done
  Index last_step = 0;
  double window_s = 0;  // of steps that are looked at together
  std::function<StepWindow(Index steps)> take_steps;
  std::function<void(const partitioner::Partition& partition, const std::string& reason)> go_on_by;
};

// Runs all but the last step, by partitions that follow the speed of devices, `current` first.
// Returns whether that was enough training. All ranks call this together.
[[nodiscard]] bool take_rebalanced_steps(const RebalancedRun& run,
                                         partitioner::Partition current,
                                         Rebalancer& rebalancer);

}  // namespace tessera::engine
