// What training takes over from the weights that it begins with: how pictures are prepared and what
// the classes are. Resumed training goes on with both; fine-tuning may have others, which is said.

#pragma once

#include <optional>

#include "engine/cli/commands.h"
#include "engine/comm/communicator.h"
#include "engine/train/preparation.h"
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

}  // namespace tessera::engine
