#include "engine/session/step_comparison.h"

#include <fmt/format.h>

#include "engine/base/median.h"
#include "partitioner/search/explained_plan.h"

namespace tessera::engine {

void StepComparison::add(double step_s) {
  constexpr std::size_t kMost = 1000;
  if (latest_s_.size() < kMost) {
    latest_s_.push_back(step_s);
    return;
  }
  latest_s_[next_] = step_s;
  next_ = (next_ + 1) % kMost;
}

std::string StepComparison::line(const partitioner::Network& network,
                                 const PartitionRequest& request,
                                 const Workload& workload,
                                 const partitioner::Partition& partition) const {
  if (latest_s_.empty() || profiled_devices(request).value_or(0) < partition.ranks) {
    return "";
  }
  const auto predicted = time_shares(network,
                                     described_cluster(request, partition.ranks, {}),
                                     prediction_options(network, request, workload, partition),
                                     partition);
  return fmt::format("step: predicted {:.3g} s, measured {:.3g} s (median of {})\n",
                     predicted.step_s(),
                     median(latest_s_),
                     latest_s_.size());
}

}  // namespace tessera::engine
