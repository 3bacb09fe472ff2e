// What training takes over from the weights that it begins with: how pictures are prepared, what
// the classes are and, of a run to resume, how far it has come. Resumed training goes on with all
// of these; fine-tuning may have others, which is said.

#pragma once

#include <cstdint>
#include <optional>

#include "engine/cli/commands.h"
#include "engine/comm/communicator.h"
#include "engine/train/checkpoint.h"
#include "engine/train/preparation.h"
#include "engine/train/trainer.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// The model file, with the layers frozen that --freeze names; without it, of a run to resume those
// that were frozen in it, which is said where the model file says others. Throws AgreedError where
// both are given and differ. All ranks call this together.
[[nodiscard]] partitioner::ModelFile model_to_train(const TrainCommand& command,
                                                    const Communicator& communicator);

// Of the file of --resume or --weights; nothing without one. All ranks call this together.
[[nodiscard]] std::optional<Preparation> preparation_before(const TrainCommand& command,
                                                            const Communicator& communicator);

// The rules to train by. Throws AgreedError where resumed training would have others.
[[nodiscard]] RenderingRules training_rules(const TrainCommand& command,
                                            const std::optional<Preparation>& before,
                                            const partitioner::ModelFile& model,
                                            const Communicator& communicator);

// Throws AgreedError where resumed training would have other classes; warns of them else.
void compare_classes(const TrainCommand& command,
                     const std::optional<Preparation>& before,
                     const Preparation& now,
                     const Communicator& communicator);

// What shuffles pictures: of the command line, else of the run to resume, else 1. All ranks call
// this together.
[[nodiscard]] std::uint64_t training_seed(const TrainCommand& command,
                                          const Communicator& communicator);

// Steps in which a post-local run averages gradients; 0: it is not one. A run that goes on keeps to
// what it had. Throws AgreedError where the command line says otherwise. All ranks call this
// together.
[[nodiscard]] Index post_local_steps(const TrainCommand& command,
                                     const partitioner::Synchronisation& sync,
                                     Index last_step,
                                     const Communicator& communicator);

// Gives the trainer the weights that training begins with, and what else a run to resume had come
// to. Returns the state of the run before its first step. Throws AgreedError where nothing is left
// to do until `last_step`. All ranks call this together.
[[nodiscard]] TrainingState begin_training(const TrainCommand& command,
                                           const partitioner::ModelFile& model,
                                           const Preparation& preparation,
                                           Index last_step,
                                           Trainer& trainer,
                                           const Communicator& communicator);

}  // namespace tessera::engine
