// Where the time of a step of a partition goes, what it sends, and the memory and energy it takes.
//
// Times are those of a mean device: of a step it computes, exchanges maps, reduces statistics and
// gradients, or stands idle. Waiting for a message counts as part of its exchange.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/cost/compute_model.h"
#include "partitioner/cost/step_energy.h"
#include "partitioner/cost/step_prices.h"
#include "partitioner/cost/synchronisation_cost.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

// Seconds of a step; the first twelve add up to it.
struct TimeShares {
  double forward_s = 0;  // layers with weights
  double backward_data_s = 0;
  double backward_weights_s = 0;
  double other_s = 0;      // normalisation, activation, pools, ..., both ways
  double recompute_s = 0;  // maps that are not kept for the backward pass
  double update_s = 0;
  double maps_s = 0;        // exchanges of maps and of their gradients
  double statistics_s = 0;  // batch statistics
  double gradients_s = 0;   // gradient reduction and parameter all-gather
  double loss_s = 0;
  double synchronisation_s = 0;  // of replicas that are apart, in a mean step
  double idle_s = 0;             // until the slowest device is done
  double redundant_s = 0;        // of computing: cells that another device owns
  double waiting_s = 0;          // of all the rest

  [[nodiscard]] double computing_s() const {
    return forward_s + backward_data_s + backward_weights_s + other_s + recompute_s + update_s;
  }
  [[nodiscard]] double step_s() const {
    return computing_s() + maps_s + statistics_s + gradients_s + loss_s + synchronisation_s +
           idle_s;
  }
};
[[nodiscard]] TimeShares time_shares(const Network& network,
                                     const ClusterProfile& cluster,
                                     const SearchOptions& options,
                                     const Partition& partition);

// What a mean device computes in a step, by layer.
[[nodiscard]] std::vector<PassSeconds> mean_computing(const Network& network,
                                                      const ClusterProfile& cluster,
                                                      const SearchOptions& options,
                                                      const Partition& partition);

// What costs the most beside computing, or "computing" where nothing else costs a tenth of the
// step.
[[nodiscard]] const char* what_limits(const TimeShares& time);

// What goes over the wire in a step.
struct StepTraffic {
  Traffic sent;             // by all devices
  Index busiest_bytes = 0;  // the most that a device sends, or receives
};
[[nodiscard]] StepTraffic step_traffic(const PricedStep& step);

// Of replicas that are apart: their exchange, beside a step of the slowest of them.
struct ExplainedReplicas {
  SynchronisationCost cost;
  double replica_s = 0;
};

struct ExplainedPlan {
  std::string name;
  Partition partition;
  TimeShares time;
  std::optional<ExplainedReplicas> replicas;
  std::optional<StepTraffic> traffic;  // of few devices, as simulations are
  std::optional<Index> most_bytes;     // of any device; nothing where memory is not counted
  bool fits = true;
  std::optional<StepEnergy> energy;  // nothing where the power of a device is unknown

  [[nodiscard]] int groups() const { return static_cast<int>(partition.groups.size()); }
};

// A single partition, without a name.
[[nodiscard]] ExplainedPlan explained(const Network& network,
                                      const ClusterProfile& cluster,
                                      const SearchOptions& options,
                                      const Partition& partition);

}  // namespace tessera::partitioner
