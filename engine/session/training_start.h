// What training takes over from the weights that it begins with: how pictures are prepared, what
// the classes are and, of a run to resume, how far it has come. Resumed training goes on with all
// of these; fine-tuning may have others, which is said.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/session/run_environment.h"
#include "engine/session/session_observer.h"
#include "engine/session/training_request.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/preparation.h"
#include "engine/train/checkpoints/training_record.h"
#include "engine/train/trainer.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// The request with the checkpoint that training goes on from, the one place that decides which it
// is: of a run that is started again that of its own folder; else what was given to resume from, of
// a run folder its newest intact one, with a warning of each that is not. Where the header of a
// file cannot be read the error names an intact one beside it. All ranks call this together.
[[nodiscard]] TrainingRequest request_from_start(TrainingRequest request,
                                                 const RunEnvironment& environment,
                                                 const Communicator& communicator,
                                                 const SessionObserver& observer);

// With what the run to resume has trained; nothing without one. All ranks call this together.
[[nodiscard]] std::optional<TrainingRecord> record_to_resume(const TrainingRequest& request,
                                                             const partitioner::Network& network,
                                                             const Communicator& communicator);

// The network with the layers frozen that the request names; without that, those that the model
// file says. All ranks call this together.
[[nodiscard]] partitioner::Network network_to_train(const TrainingRequest& request,
                                                    const partitioner::Network& network,
                                                    const Communicator& communicator);

// The model file, with the layers frozen that the request names; without it, of a run to resume
// those that were frozen in it, which is said where the model file says others. Throws AgreedError
// where both are given and differ. All ranks call this together.
[[nodiscard]] partitioner::ModelFile model_to_train(const TrainingRequest& request,
                                                    const Communicator& communicator,
                                                    const SessionObserver& observer);

// What the checkpoint to resume, or the weights, say; nothing without one. All ranks call this
// together.
[[nodiscard]] std::optional<Preparation> preparation_before(const TrainingRequest& request,
                                                            const Communicator& communicator);

// The rules to train by. Throws AgreedError where resumed training would have others.
[[nodiscard]] RenderingRules training_rules(const TrainingRequest& request,
                                            const std::optional<Preparation>& before,
                                            const partitioner::ModelFile& model,
                                            const Communicator& communicator,
                                            const SessionObserver& observer);

// Throws AgreedError where resumed training would have other classes; warns of them else.
void compare_classes(const TrainingRequest& request,
                     const std::optional<Preparation>& before,
                     const Preparation& now,
                     const Communicator& communicator,
                     const SessionObserver& observer);

// The seed of shuffling: the one that is asked for, else that of the run to resume, else 1. All
// ranks call this together.
[[nodiscard]] std::uint64_t training_seed(const TrainingRequest& request,
                                          const Communicator& communicator);

// Steps in which a post-local run averages gradients; 0: it is not one. A run that goes on keeps to
// what it had. Throws AgreedError where the request says otherwise. All ranks call this together.
[[nodiscard]] Index post_local_steps(const TrainingRequest& request,
                                     const partitioner::Synchronisation& sync,
                                     Index last_step,
                                     const Communicator& communicator);

// Gives the trainer the weights that training begins with, and what else a run to resume had come
// to: that of the last step, where it was kept, or of `kept_step` (0: of none). Returns the state
// of the run before its first step, `begun` if it begins. All ranks call this together.
[[nodiscard]] TrainingState begin_training(const TrainingRequest& request,
                                           const RunEnvironment& environment,
                                           TrainingState begun,
                                           Trainer& trainer,
                                           const std::optional<Index>& kept_step,
                                           const Communicator& communicator,
                                           const SessionObserver& observer);

}  // namespace tessera::engine
