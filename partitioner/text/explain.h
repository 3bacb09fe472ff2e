// Why a partition is the one to take: where the time of its step goes, beside that of baselines,
// what other ways to use the devices would bring, and what more or fewer devices would change.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "partitioner/search/explained_plan.h"
#include "partitioner/search/search.h"
#include "partitioner/text/alternatives.h"
#include "partitioner/text/explain_all_reduce.h"

namespace tessera::partitioner {

struct ExplainedCount {
  int devices = 0;
  std::optional<ExplainedPlan> best;  // nothing where nothing fits
};

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
  Alternatives alternatives;
  std::vector<ExplainedPlan> plans;
  std::vector<ExplainedCount> counts;
  std::vector<ExplainedAllReduce> all_reduces;          // empty for a single device
  std::vector<MeasuredAllReduce> measured_all_reduces;  // empty where none were
};

// The predicted step in lines of at most 100 columns: its time; then what it sends and the energy
// that it takes. Both as one JSON object.
[[nodiscard]] std::string time_text(const ExplainedPlan& plan);
[[nodiscard]] std::string traffic_text(const ExplainedPlan& plan);
[[nodiscard]] std::string prediction_json(const ExplainedPlan& plan);

// At most 100 columns.
[[nodiscard]] std::string explanation_table(const Explanation& explanation);
// One JSON object.
[[nodiscard]] std::string explanation_json(const Explanation& explanation);

}  // namespace tessera::partitioner
