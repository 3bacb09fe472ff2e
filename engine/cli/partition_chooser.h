// Chooses the devices of a run, and with them its partition, by what is predicted for each set of
// devices and by trials of those that predictions do not rule out (after Gu et al. 2019).
//
// Rank 0 searches and decides; all ranks call everything here together, and errors are
// AgreedErrors.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "engine/cli/trial_runs.h"
#include "partitioner/report/choice_report.h"

namespace tessera::engine {

// What a rank knows of a trial that is over.
struct RankTrial {
  double computing = 0;  // as in TrialMeasurement
  MeasuredPower board;
  MeasuredPower cluster;
};

// The sets of devices of a cluster with what is predicted for each; on one rank.
class DeviceChoice {
 public:
  // `command` and `network` must outlive it. Throws InputError where powers are asked for that
  // nobody knows.
  DeviceChoice(const ChooseCommand& command,
               const partitioner::Network& network,
               const Workload& workload,
               partitioner::ClusterProfile cluster);

  [[nodiscard]] const partitioner::ClusterProfile& cluster() const { return cluster_; }
  [[nodiscard]] const std::vector<partitioner::DeviceSet>& sets() const { return sets_; }
  // The one to begin with.
  [[nodiscard]] const partitioner::Partition& first_partition() const;

  // For a run of that size; `metered`: trials are to show power to meters.
  [[nodiscard]] partitioner::DeviceTrials trials(const RunSize& size, bool metered = false) const;

  // Throws InputError that says which set comes closest, where no set keeps the limits; or, where
  // trials are still to come, where none may keep them.
  void expect_choice(const partitioner::DeviceTrials& trials, bool trials_to_come) const;

  // `tried`: not all of it is predicted.
  [[nodiscard]] partitioner::ChoiceReport report(const partitioner::DeviceTrials& trials,
                                                 bool tried) const;

  // What the devices of a set take by what meters showed on each rank during a trial and, for
  // devices without one, by the profile and the part of the time in which they computed. Nothing
  // where the power of a device is unknown.
  [[nodiscard]] std::optional<partitioner::Estimate> power_of(
      const partitioner::DeviceSet& set,
      const std::vector<RankTrial>& of_ranks,
      const std::vector<std::string>& hosts);

 private:
  [[nodiscard]] std::optional<partitioner::Candidate> find(const std::vector<int>& devices,
                                                           const partitioner::Network& network,
                                                           const Workload& workload) const;
  [[nodiscard]] partitioner::PredictedSet predicted(const partitioner::DeviceSet& set) const;
  // Of the devices that are not listed, where they are idle.
  [[nodiscard]] std::optional<double> idle_w_beside(const std::vector<int>& devices) const;

  const ChooseCommand& command_;
  partitioner::ClusterProfile cluster_;
  partitioner::Objective objective_;
  std::vector<partitioner::DeviceSet> sets_;
  bool estimated_ = false;  // whether a power is, by a table
};

class PartitionChooser {
 public:
  explicit PartitionChooser(const ChooseCommand& command) : command_(command) {}

  // Where the run goes on that an earlier choice was made for, that of it; else the one that is
  // predicted to be best.
  [[nodiscard]] partitioner::Partition first_partition(const partitioner::Network& network,
                                                       const Workload& workload,
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

  const ChooseCommand& command_;
  std::vector<std::string> hosts_;                   // of ranks
  bool known_ = false;                               // by an earlier choice
  std::string earlier_json_;                         // rank 0: that choice
  std::optional<DeviceChoice> choice_;               // rank 0, where there is no earlier one
  std::optional<partitioner::DeviceTrials> trials_;  // likewise
  partitioner::Partition current_;                   // of the run
  Index steps_tried_ = 0;
};

}  // namespace tessera::engine
