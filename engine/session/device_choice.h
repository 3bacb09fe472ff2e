// The sets of devices that a run may be on, with what is predicted for each and, where they are
// tried, the power that they take.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/session/planning.h"
#include "engine/session/training_request.h"
#include "engine/session/trial_runs.h"
#include "partitioner/text/choice_report.h"

namespace tessera::engine {

// What a rank knows of a trial that is over.
struct RankTrial {
  double computing = 0;  // as in TrialMeasurement
  MeasuredPower board;
  MeasuredPower cluster;
};

// The power of a set of devices during a trial; `estimated`: some of it by a table.
struct TrialPower {
  partitioner::Estimate watts;
  bool estimated = false;
};

// The sets of devices of a cluster with what is predicted for each; on one rank.
class DeviceChoice {
 public:
  // For a run of so many steps. `network` must outlive it. Throws InputError where powers are asked
  // for that nobody knows.
  DeviceChoice(const DeviceRequest& devices,
               const PartitionRequest& partition,
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

  // Which set comes closest, in a sentence, where no set keeps the limits; or, where trials are
  // still to come, where none may keep them.
  [[nodiscard]] std::optional<std::string> why_none(const partitioner::DeviceTrials& trials,
                                                    bool trials_to_come) const;

  // `tried`: not all of it is predicted. `estimated`: a trial's power is.
  [[nodiscard]] partitioner::ChoiceReport report(const partitioner::DeviceTrials& trials,
                                                 bool tried,
                                                 bool estimated = false) const;

  // What the devices of a set take by what meters showed on each rank during a trial and, for
  // devices without one, by the profile and the part of the time in which they computed. Nothing
  // where the power of a device is unknown.
  [[nodiscard]] std::optional<TrialPower> trial_power(const partitioner::DeviceSet& set,
                                                      const std::vector<RankTrial>& trials,
                                                      const std::vector<std::string>& hosts) const;

 private:
  [[nodiscard]] std::optional<partitioner::Candidate> find(const std::vector<int>& devices,
                                                           const partitioner::Network& network,
                                                           const Workload& workload) const;
  [[nodiscard]] partitioner::PredictedSet predicted(const partitioner::DeviceSet& set) const;
  // The idle power of the devices that are not listed, where it is known.
  [[nodiscard]] std::optional<double> idle_w_beside(const std::vector<int>& devices) const;

  DeviceRequest request_;
  PartitionRequest partition_;  // of each set, by a search for the least time
  partitioner::ClusterProfile cluster_;
  std::vector<partitioner::DeviceSet> sets_;
};

// What choosing would come to by predictions alone.
struct PredictedChoice {
  partitioner::ChoiceReport report;
  std::optional<std::string> problem;  // no set keeps the limits
};

// For a request of devices, without other ranks. Throws InputError.
[[nodiscard]] PredictedChoice predict_choice(const TrainingRequest& request,
                                             const SessionObserver& observer);

}  // namespace tessera::engine
