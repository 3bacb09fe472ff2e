// Chooses the devices of a run, and with them its partition, by what is predicted for each set of
// devices and by trials of those that predictions do not rule out (after Gu et al. 2019).
//
// Rank 0 searches and decides; all ranks call everything here together, and errors are
// AgreedErrors.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/device_choice.h"

namespace tessera::engine {

class PartitionChooser {
 public:
  // The request asks for devices; it and the observer must outlive this.
  PartitionChooser(const TrainingRequest& request, const SessionObserver& observer)
      : request_(request), observer_(observer) {}

  // The first partition of a run of so many steps: that of an earlier choice for it, else the
  // one that is predicted to be best.
  [[nodiscard]] partitioner::Partition first_partition(const partitioner::Network& network,
                                                       const Workload& workload,
                                                       Index steps,
                                                       const Communicator& communicator);

  // Throws AgreedError where by prediction no set keeps the limits.
  void expect_feasible(const RunSize& size, const Communicator& communicator) const;

  // Tries sets of devices and leaves the run with the partition of the best one.
  void choose(const TrialRuns& runs);

 private:
  [[nodiscard]] std::optional<std::string> earlier_partition(
      const partitioner::Network& network,
      const Workload& workload,
      const partitioner::ClusterProfile& cluster);
  [[nodiscard]] bool try_next(const TrialRuns& runs);
  void tell_choice(const TrialRuns& runs);

  const TrainingRequest& request_;
  const SessionObserver& observer_;
  std::vector<std::string> hosts_;                   // of ranks
  bool known_ = false;                               // by an earlier choice
  std::string earlier_json_;                         // rank 0: that choice
  std::optional<DeviceChoice> choice_;               // rank 0, where there is no earlier one
  std::optional<partitioner::DeviceTrials> trials_;  // likewise
  partitioner::Partition current_;                   // of the run
  Index steps_tried_ = 0;
  bool estimated_ = false;  // rank 0: whether the power of a trial is, by a table
};

}  // namespace tessera::engine
