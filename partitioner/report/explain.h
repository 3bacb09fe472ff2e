// Why a partition is the one to take: where the time of its step goes, beside that of baselines,
// and what more or fewer devices would change.
//
// Times are those of a mean device: of a step it computes, exchanges maps, reduces statistics and
// gradients, or stands idle. Waiting for a message counts as part of its exchange.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/cost/compute_model.h"
#include "partitioner/cost/step_prices.h"
#include "partitioner/plan/plan_totals.h"
#include "partitioner/report/explain_all_reduce.h"
#include "partitioner/search/search.h"

namespace tessera::partitioner {

// Seconds of a step; the first eleven add up to it.
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
  double idle_s = 0;       // until the slowest device is done
  double redundant_s = 0;  // of computing: cells that another device owns
  double waiting_s = 0;    // of all the rest

  [[nodiscard]] double computing_s() const {
    return forward_s + backward_data_s + backward_weights_s + other_s + recompute_s + update_s;
  }
  [[nodiscard]] double step_s() const {
    return computing_s() + maps_s + statistics_s + gradients_s + loss_s + idle_s;
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

struct ExplainedPlan {
  std::string name;
  Partition partition;
  TimeShares time;
  std::optional<StepTraffic> traffic;  // of few devices, as simulations are
  std::optional<Index> most_bytes;     // of any device; nothing where memory is not counted
  bool fits = true;

  [[nodiscard]] int groups() const { return static_cast<int>(partition.groups.size()); }
};

// A single partition, without a name.
[[nodiscard]] ExplainedPlan explained(const Network& network,
                                      const ClusterProfile& cluster,
                                      const SearchOptions& options,
                                      const Partition& partition);

struct ExplainedCount {
  int devices = 0;
  std::optional<ExplainedPlan> best;  // nothing where nothing fits
};

// What a partition stands against, by name, where there is such a thing: the best without fused
// groups, the best single group, a grid of tiles, shares of images. Kernels, reader and gradient
// reduction are those of `like`.
[[nodiscard]] std::vector<std::pair<std::string, Partition>> simple_baselines(
    const Network& network,
    const ClusterProfile& cluster,
    const SearchOptions& options,
    const Partition& like);

// The partition, the next best of a search, and the simple baselines.
[[nodiscard]] std::vector<ExplainedPlan> compare_with_baselines(const Network& network,
                                                                const ClusterProfile& cluster,
                                                                const SearchOptions& options,
                                                                const Partition& partition);

// The best partition of the first 1, 2, 3, ... devices, and of some more like the slowest. Of more
// than eight devices only powers of two, and all.
[[nodiscard]] std::vector<ExplainedCount> compare_device_counts(const Network& network,
                                                                const ClusterProfile& cluster,
                                                                const SearchOptions& options);

// The first devices of the cluster, or all of them and more like its slowest.
[[nodiscard]] ClusterProfile cluster_of_size(const Network& network,
                                             const ClusterProfile& cluster,
                                             int devices);

// How well a network scales: the best partition for a number of devices.
struct ScaledStep {
  int devices = 0;
  TimeShares time;
  double planning_s = 0;
};
[[nodiscard]] std::string scale_table(const std::vector<ScaledStep>& steps);  // 100 columns or less
[[nodiscard]] std::string scale_json(const ScaledStep& step);                 // one JSON object

struct Explanation {
  std::vector<ExplainedPlan> plans;
  std::vector<ExplainedCount> counts;
  std::vector<ExplainedAllReduce> all_reduces;          // empty for a single device
  std::vector<MeasuredAllReduce> measured_all_reduces;  // empty where none were
};

// The predicted step in a few lines of at most 100 columns, and as one JSON object.
[[nodiscard]] std::string prediction_text(const ExplainedPlan& plan);
[[nodiscard]] std::string prediction_json(const ExplainedPlan& plan);

// At most 100 columns.
[[nodiscard]] std::string explanation_table(const Explanation& explanation);
// One JSON object.
[[nodiscard]] std::string explanation_json(const Explanation& explanation);

}  // namespace tessera::partitioner
