// The sets of devices that a run may be on, with what is predicted for each and, where they are
// tried, the power that they take.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/cli/planning.h"
#include "engine/cli/trial_runs.h"
#include "partitioner/report/choice_report.h"

namespace tessera::engine {

// A limit of the command line, of which 0 means that there is none.
[[nodiscard]] inline std::optional<double> limit_given(double of_command) {
  return of_command > 0 ? std::optional(of_command) : std::nullopt;
}

// What a rank knows of a trial that is over.
struct RankTrial {
  double computing = 0;  // as in TrialMeasurement
  MeasuredPower board;
  MeasuredPower cluster;
};

// The sets of devices of a cluster with what is predicted for each; on one rank.
class DeviceChoice {
 public:
  // For a run of so many steps. `command` and `network` must outlive it. Throws InputError where
  // powers are asked for that nobody knows.
  DeviceChoice(const ChooseCommand& command,
               const partitioner::Network& network,
               const Workload& workload,
               Index steps,
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

}  // namespace tessera::engine
