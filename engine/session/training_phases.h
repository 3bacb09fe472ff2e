// The phases (train/training_phase.h) of a training run, one after the other: each has a partition,
// and a network in which other layers may be frozen than before. Ranks that have no part in a phase
// rest until the next one.
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
  // Of all ranks of the run; it must outlive it.
  explicit TrainingPhases(const Communicator& communicator) : communicator_(communicator) {}

  // The first phase, in which all take part. Options are those of all phases, without sizes.
  void begin(PhasePlan first, const TrainerOptions& options, PictureSources sources);

  // The next one, by that partition, which goes on with what was learnt, optimizer state of layers
  // that learn in both included; of others it begins at 0. Ranks without a tile rest, but for rank
  // 0, which has the run's folder, and who reads pictures for all. What each rank has of its own
  // (Trainer::own_arrays()) is dropped.
  void change_to(const partitioner::Partition& partition, PhasePlan next);

  // That there is now; null where this rank rests.
  [[nodiscard]] TrainingPhase* now() { return phase_ ? &*phase_ : nullptr; }
  [[nodiscard]] const partitioner::Network& network() const {
    return phase_ ? phase_->network() : resting_.network;
  }
  [[nodiscard]] const partitioner::Plan& plan() const {
    return phase_ ? phase_->plan() : resting_.plan;
  }

  // Does the work on the ranks that take part while the others wait, which takes next to nothing of
  // their processors. What ends it there ends it on all: an AgreedError, or a signal (Stopped).
  void take_part(const std::function<void()>& work);

  // Steps of the run that are done, on all ranks.
  [[nodiscard]] Index steps_done();
  // By this rank, in all phases.
  [[nodiscard]] std::int64_t sent_bytes();
  // Maps of frozen layers that this rank keeps in memory.
  [[nodiscard]] Index trunk_bytes();
  // What this rank has allocated for the phase.
  [[nodiscard]] partitioner::MemoryUse memory();

 private:
  const Communicator& communicator_;
  TrainerOptions options_;
  PictureSources sources_;
  std::optional<TrainingPhase> phase_;
  PhasePlan resting_;                   // of the phase in which this rank rests
  bool some_rest_ = false;              // the same on all ranks
  std::int64_t sent_bytes_before_ = 0;  // in the phases before
};

}  // namespace tessera::engine
