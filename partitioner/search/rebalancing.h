// When training should go on by another partition, because devices turn out to be slower or faster
// than their profiles say: one is throttled, or has other work.
//
// Slowness is how many times as long as by its profile a device computes. It is measured over
// windows of steps. Hysteresis keeps a partition from changing with every fluctuation: two windows
// one after the other have to agree that the slowness of a device has changed, and another
// partition has to be enough faster and to make up for the time that changing takes. All devices
// wait while one of them searches, so searches are rare where they take long.

#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "partitioner/cost/cluster_profile.h"
#include "partitioner/cost/cost_model.h"

namespace tessera::partitioner {

// The cluster with devices that compute slowness[i] times as long, each above 0. Links, and what
// messages take of a processor, stay.
[[nodiscard]] ClusterProfile slowed(ClusterProfile cluster, const std::vector<double>& slowness);

// Seconds that each rank computes in a step of the plan; 0 where it has no part in it.
[[nodiscard]] std::vector<double> computing_seconds(const Network& network,
                                                    const Plan& plan,
                                                    const ClusterProfile& cluster,
                                                    const CostOptions& options);

struct RebalancingOptions {
  double noticed = 0.15;     // relative change of a device's slowness that is worth a search
  double least_saved = 0.1;  // of a step, by another partition
  double searching = 0.05;   // the most of a run's time that searches may take, after the first
};

class SlownessWatch {
 public:
  explicit SlownessWatch(int devices, const RebalancingOptions& options = {});

  // Mean seconds that each device computed in a step of a window, and by its profile under the
  // partition at hand; a device with 0 in one of them had no part in the steps, and is taken to be
  // as slow as it was before. Returns the slowness of all devices where a search is worth while.
  [[nodiscard]] std::optional<std::vector<double>> add_window(
      const std::vector<double>& measured_s, const std::vector<double>& predicted_s);

  // The partition at hand is the best for devices of this slowness, as far as is known.
  void settle(const std::vector<double>& slowness);

  // Whether a search may begin, in seconds of any steady clock, and that one has been made.
  [[nodiscard]] bool may_search(double now_s) const { return now_s >= next_search_s_; }
  void note_search(double begun_s, double ended_s);

  // Whether to change from steps of `now_s` to steps of `then_s`, where changing takes `change_s`.
  [[nodiscard]] bool is_worth_while(double now_s,
                                    double then_s,
                                    Index steps_left,
                                    double change_s) const;

 private:
  [[nodiscard]] bool differ(const std::vector<double>& a, const std::vector<double>& b) const;

  RebalancingOptions options_;
  std::vector<double> settled_;               // what the partition at hand was found for
  std::vector<double> latest_;                // of the last window
  std::optional<std::vector<double>> other_;  // of the last window, where it differed
  double next_search_s_ = std::numeric_limits<double>::lowest();
};

}  // namespace tessera::partitioner
