// What the ranks that take part do beside the computing of steps, told while they do it.

#pragma once

#include <functional>

#include "engine/train/training_run.h"

namespace tessera::engine {

struct RunActivity {
  enum class Kind {
    Steps,  // steps again
    Test,
    Saving  // a checkpoint or the best weights, which may wait for the disk
  };
  Kind kind = Kind::Steps;
  Index steps = 0;  // Test: it should take no longer than so many
  Index bytes = 0;  // Saving: what may have to reach the disk, at most
};
using TellActivity = std::function<void(const RunActivity&)>;

// An observer that is added before all others, which may write files, and one that is added after
// them. `tell` must outlive the run; both do nothing where it is empty.
[[nodiscard]] TrainingObserver activity_begins(const TellActivity& tell,
                                               const partitioner::Plan& plan,
                                               const partitioner::TrainingOptions& training);
[[nodiscard]] TrainingObserver activity_ends(const TellActivity& tell);

}  // namespace tessera::engine
