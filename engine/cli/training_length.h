// How long a training run goes on and how its learning rate runs until then, by the model file and
// the command line.

#pragma once

#include <string>

#include "engine/cli/commands.h"
#include "engine/comm/communicator.h"
#include "engine/train/training_run.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// What the command line changes about what the model file says. Throws InputError.
[[nodiscard]] partitioner::TrainingOptions training_options(const TrainCommand& command,
                                                            const partitioner::ModelFile& model);

// Sets the length of the schedule to that of training where neither says it. Throws AgreedError
// where nothing says how long to train; all ranks find that alike.
[[nodiscard]] TrainingLength training_length(const TrainCommand& command,
                                             Index pictures,
                                             partitioner::TrainingOptions& training);

// Warns on rank 0 where the model file has the batch of a file for testing.
void warn_of_testing_batch(const TrainCommand& command,
                           const partitioner::ModelFile& model,
                           const Communicator& communicator);

// Warns on rank 0 where steps up to the last would change nothing.
void warn_of_zero_rate(const TrainCommand& command,
                       const partitioner::TrainingOptions& training,
                       Index first_step,
                       Index last_step,
                       const Communicator& communicator);

}  // namespace tessera::engine
