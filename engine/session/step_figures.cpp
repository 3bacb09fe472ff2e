#include "engine/session/step_figures.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/median.h"
#include "partitioner/search/explained_plan.h"

namespace tessera::engine {

void StepFigures::add(double step_s) {
  constexpr std::size_t kMost = 1000;
  if (latest_s_.size() < kMost) {
    latest_s_.push_back(step_s);
    return;
  }
  latest_s_[next_] = step_s;
  next_ = (next_ + 1) % kMost;
}

TrainingObserver StepFigures::observer(const TrainingLength& length,
                                       const PictureCaching& caching,
                                       std::function<void(const std::string& text)> warn) {
  const double epochs = static_cast<double>(length.last_step) /
                        static_cast<double>(std::max<Index>(length.epoch_steps, 1));
  return {.step = [this, epochs, &caching, warn = std::move(warn)](Index /*step*/,
                                                                   const StepResult& result) {
    if (!result.size && !result.trunk_given) {  // predictions are of the configured size, and of
                                                // all that is computed
      add(result.times.step_s);
    }
    loss_.add(result.loss);
    if (const auto advice = wait_.add(result.times, epochs, caching)) {
      warn(*advice);
    }
  }};
}

std::string StepFigures::line(const partitioner::Network& network,
                              const PartitionRequest& request,
                              const Workload& workload,
                              const partitioner::Partition& partition) const {
  const auto cluster = profiled_cluster(request, partition.ranks);
  if (latest_s_.empty() || !cluster) {
    return "";
  }
  const auto predicted = time_shares(
      network, *cluster, prediction_options(network, request, workload, partition), partition);
  return fmt::format("step: predicted {:.3g} s, measured {:.3g} s (median of {})\n",
                     predicted.step_s(),
                     median(latest_s_),
                     latest_s_.size());
}

}  // namespace tessera::engine
