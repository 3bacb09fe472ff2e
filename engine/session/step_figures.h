// What rank 0 makes of a run's steps: their seconds beside what was predicted for them, whether
// training has diverged, and whether it waits for pictures.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_log/loss_trend.h"
#include "engine/session/picture_wait.h"
#include "engine/session/planning.h"
#include "engine/train/training_run.h"

namespace tessera::engine {

class StepFigures {
 public:
  // `guess`: as LossTrend takes it.
  explicit StepFigures(double guess) : loss_(guess) {}

  [[nodiscard]] LossTrend& loss() { return loss_; }

  // `warn` is called with advice. All must outlive the run.
  [[nodiscard]] TrainingObserver observer(const TrainingLength& length,
                                          const PictureCaching& caching,
                                          std::function<void(const std::string& text)> warn);

  // Steps are taken by another partition from here on.
  void change_partition() {
    latest_s_.clear();
    next_ = 0;
  }

  // "step: predicted 1.32 s, measured 1.40 s (median of 120)" with a line break; empty where no
  // profile of the cluster is known, or no step was measured.
  [[nodiscard]] std::string line(const partitioner::Network& network,
                                 const PartitionRequest& request,
                                 const Workload& workload,
                                 const partitioner::Partition& partition) const;

 private:
  void add(double step_s);

  LossTrend loss_;
  PictureWait wait_;
  std::vector<double> latest_s_;  // of steps by the partition at hand, the last ones
  std::size_t next_ = 0;          // which of them the next one replaces
};

}  // namespace tessera::engine
