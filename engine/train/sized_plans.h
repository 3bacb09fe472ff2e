// The plans of multi-scale training: by one partition, for the size that the input has in each
// step. They are made when they are asked for, and the last few are kept.

#pragma once

#include <deque>
#include <memory>

#include "engine/data/batch/input_schedule.h"
#include "partitioner/plan/sized_plan.h"

namespace tessera::engine {

// Not for several threads.
class SizedPlans {
 public:
  // `partition` is one of `network`, whose input has the configured size.
  SizedPlans(partitioner::Network network,
             partitioner::Partition partition,
             Index batch,
             InputSchedule schedule);

  [[nodiscard]] const InputSchedule& schedule() const { return schedule_; }

  // `step` is counted from 0.
  [[nodiscard]] std::shared_ptr<const partitioner::SizedPlan> at(Index step) const {
    return of(schedule_.at(step));
  }
  [[nodiscard]] std::shared_ptr<const partitioner::SizedPlan> configured() const {
    return of(partitioner::size_of(network_.image));
  }
  [[nodiscard]] std::shared_ptr<const partitioner::SizedPlan> of(
      const partitioner::InputSize& size) const;

 private:
  partitioner::Network network_;
  partitioner::Partition partition_;
  Index batch_;
  InputSchedule schedule_;
  mutable std::deque<std::shared_ptr<const partitioner::SizedPlan>> kept_;  // the last used first
};

}  // namespace tessera::engine
