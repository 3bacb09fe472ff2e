// The partitions by which a training run goes on, one phase (train/training_phase.h) after the
// other. Ranks that have no part in a phase rest until the next one.
//
// All ranks of the run call everything here together, but for what only looks; errors are
// AgreedErrors.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "engine/comm/communicator.h"
#include "engine/train/training_phase.h"
#include "partitioner/memory/memory.h"
#include "partitioner/partition/partition.h"

namespace tessera::engine {

class TrainingPhases {
 public:
  // `communicator` has all ranks of the run. Both must outlive it.
  TrainingPhases(const partitioner::Network& network, const Communicator& communicator)
      : network_(network), communicator_(communicator) {}

  // The first phase, in which all take part.
  void begin(partitioner::Plan plan, const TrainerOptions& options, PictureSources sources);

  // The next one, which goes on with what was learnt. Ranks without a tile rest, but for rank 0,
  // which has the run's folder, and who reads pictures for all. `images`: of a pass.
  void change_to(const partitioner::Partition& partition, Index images);

  // That there is now; null where this rank rests.
  [[nodiscard]] TrainingPhase* now() { return phase_ ? &*phase_ : nullptr; }
  [[nodiscard]] const partitioner::Plan& plan() const {
    return phase_ ? phase_->plan() : resting_plan_;
  }

  // Does the work on the ranks that take part while the others wait, which takes next to nothing of
  // their processors. What ends it there ends it on all: an AgreedError, or a signal (Stopped).
  void take_part(const std::function<void()>& work);

  // Steps of the run that are done, on all ranks.
  [[nodiscard]] Index steps_done();
  // By this rank, in all phases.
  [[nodiscard]] std::int64_t sent_bytes();
  // What this rank has allocated for the phase.
  [[nodiscard]] partitioner::MemoryUse memory();

 private:
  const partitioner::Network& network_;
  const Communicator& communicator_;
  TrainerOptions options_;
  PictureSources sources_;
  std::optional<TrainingPhase> phase_;
  partitioner::Plan resting_plan_;      // of the phase in which this rank rests
  bool some_rest_ = false;              // the same on all ranks
  std::int64_t sent_bytes_before_ = 0;  // in the phases before
};

}  // namespace tessera::engine
