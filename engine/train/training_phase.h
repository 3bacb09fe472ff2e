// A part of a training run that goes on under one partition: its plan, trainer and loaders. A run
// may have several, one after the other; what was learnt goes from each to the next by
// CarriedState.
//
// All ranks that take part make it together.

#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "engine/train/data_loader.h"
#include "engine/train/trainer.h"
#include "partitioner/plan/plan.h"

namespace tessera::engine {

// Sources of images, null on ranks that do not read; they outlast the loaders that use them.
struct PictureSources {
  std::shared_ptr<const BatchSource> training;
  std::shared_ptr<const BatchSource> testing;
  bool tests = false;  // the same on all ranks
};

class TrainingPhase {
 public:
  // `network` must outlive it.
  TrainingPhase(const partitioner::Network& network,
                partitioner::Plan plan,
                const Communicator& communicator,
                const TrainerOptions& options,
                const PictureSources& sources)
      : plan_(std::move(plan)),
        communicator_(communicator),
        training_(sources.training, plan_, communicator_),
        trainer_(network, plan_, communicator_, options) {
    if (options.sizes) {
      training_.follow(options.sizes, options.training.subdivisions);
    }
    if (sources.tests) {
      testing_.emplace(sources.testing, plan_, communicator_);
    }
  }
  TrainingPhase(const TrainingPhase&) = delete;
  TrainingPhase& operator=(const TrainingPhase&) = delete;

  [[nodiscard]] const partitioner::Plan& plan() const { return plan_; }
  // The ranks that take part.
  [[nodiscard]] const Communicator& communicator() const { return communicator_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] DataLoader& training() { return training_; }
  // Null where nothing is tested.
  [[nodiscard]] DataLoader* testing() { return testing_ ? &*testing_ : nullptr; }

 private:
  partitioner::Plan plan_;
  Communicator communicator_;
  DataLoader training_;
  std::optional<DataLoader> testing_;
  Trainer trainer_;
};

}  // namespace tessera::engine
