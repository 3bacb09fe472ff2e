// A part of a training run that goes on under one plan, with the same layers frozen: its network,
// plan, trainer and loaders. A run may have several, one after the other; what was learnt goes from
// each to the next by CarriedState.
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

// What is trained in a phase.
struct PhasePlan {
  partitioner::Network network;  // as it is in these steps
  partitioner::Plan plan;
  std::shared_ptr<const SizedPlans> sizes = nullptr;  // see TrainerOptions
  std::optional<TrunkCacheOptions> trunk = {};        // nothing: maps of frozen layers are not kept
};

class TrainingPhase {
 public:
  // `options` without sizes.
  TrainingPhase(PhasePlan phase,
                const Communicator& communicator,
                TrainerOptions options,
                const PictureSources& sources)
      : network_(std::move(phase.network)),
        plan_(std::move(phase.plan)),
        communicator_(communicator),
        training_(sources.training, plan_, communicator_),
        trainer_(network_,
                 plan_,
                 communicator_,
                 with_sizes(std::move(options), std::move(phase.sizes))) {
    if (const auto& sizes = trainer_.options().sizes) {
      training_.follow(sizes, trainer_.options().training.subdivisions);
    }
    if (sources.tests) {
      testing_.emplace(sources.testing, plan_, communicator_);
    }
    if (phase.trunk) {
      trunk_.emplace(trainer_.execution(), training_, of(*phase.trunk, "training"));
      trainer_.use(*trunk_);
    }
    if (phase.trunk && testing_) {
      testing_trunk_.emplace(trainer_.execution(), *testing_, of(*phase.trunk, "testing"));
    }
  }
  TrainingPhase(const TrainingPhase&) = delete;
  TrainingPhase& operator=(const TrainingPhase&) = delete;

  [[nodiscard]] const partitioner::Network& network() const { return network_; }
  [[nodiscard]] const partitioner::Plan& plan() const { return plan_; }
  // The ranks that take part.
  [[nodiscard]] const Communicator& communicator() const { return communicator_; }
  [[nodiscard]] Trainer& trainer() { return trainer_; }
  [[nodiscard]] DataLoader& training() { return training_; }
  // Null where nothing is tested.
  [[nodiscard]] DataLoader* testing() { return testing_ ? &*testing_ : nullptr; }
  // Null where maps of frozen layers are not kept, for steps and for tests.
  [[nodiscard]] TrunkCache* trunk() { return trunk_ ? &*trunk_ : nullptr; }
  [[nodiscard]] TrunkCache* testing_trunk() { return testing_trunk_ ? &*testing_trunk_ : nullptr; }

 private:
  [[nodiscard]] static TrainerOptions with_sizes(TrainerOptions options,
                                                 std::shared_ptr<const SizedPlans> sizes) {
    options.sizes = std::move(sizes);
    return options;
  }
  [[nodiscard]] static TrunkCacheOptions of(TrunkCacheOptions options, const char* pictures) {
    options.identity += pictures;
    return options;
  }

  partitioner::Network network_;
  partitioner::Plan plan_;
  Communicator communicator_;
  DataLoader training_;
  std::optional<DataLoader> testing_;
  Trainer trainer_;
  std::optional<TrunkCache> trunk_;
  std::optional<TrunkCache> testing_trunk_;
};

}  // namespace tessera::engine
