#include "engine/train/sized_plans.h"

#include <algorithm>
#include <utility>

namespace tessera::engine {

using partitioner::SizedPlan;

SizedPlans::SizedPlans(partitioner::Network network,
                       partitioner::Partition partition,
                       Index batch,
                       InputSchedule schedule)
    : network_(std::move(network)),
      partition_(std::move(partition)),
      batch_(batch),
      schedule_(std::move(schedule)) {}

std::shared_ptr<const SizedPlan> SizedPlans::of(const partitioner::InputSize& size) const {
  constexpr std::size_t kKept = 3;  // those of this step, of the next one, and to test by
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&size](const auto& plan) {
    return partitioner::size_of(plan->network.image) == size;
  });
  if (known != kept_.end()) {
    std::rotate(kept_.begin(), known, known + 1);
    return kept_.front();
  }
  kept_.push_front(
      std::make_shared<const SizedPlan>(sized_plan(network_, partition_, batch_, size)));
  if (kept_.size() > kKept) {
    kept_.pop_back();
  }
  return kept_.front();
}

}  // namespace tessera::engine
