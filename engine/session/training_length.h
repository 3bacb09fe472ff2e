// How long a training run goes on and how its learning rate runs until then, by the model file and
// the request.

#pragma once

#include <optional>
#include <string>

#include "engine/session/session_observer.h"
#include "engine/session/training_request.h"
#include "engine/train/checkpoints/training_record.h"
#include "engine/train/training_run.h"
#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// What the model file says, as the request changes it. Throws InputError.
// `before`: of the checkpoint to resume, whose images of a step stay unless others are asked for.
[[nodiscard]] partitioner::TrainingOptions training_options(
    const TrainingRequest& request,
    const partitioner::ModelFile& model,
    const std::optional<TrainingRecord>& before = {});

// Sets the length of the schedule to that of training where neither says it. Throws AgreedError
// where nothing says how long to train; all ranks find that alike.
[[nodiscard]] TrainingLength training_length(const TrainingRequest& request,
                                             Index pictures,
                                             partitioner::TrainingOptions& training);

// Warns on rank 0 where the model file has the batch of a file for testing.
void warn_of_testing_batch(const TrainingRequest& request,
                           const partitioner::ModelFile& model,
                           const Communicator& communicator,
                           const SessionObserver& observer);

// Warns on rank 0 where a layer normalises a batch of a single value per channel, which becomes 0
// whatever it was, also in one of independent replicas or of tiles that take statistics of their
// own. `images`: of a pass of all of them.
void warn_of_single_values(const TrainingRequest& request,
                           const partitioner::Network& network,
                           const partitioner::Plan& plan,
                           BatchNormMode batch_norm,
                           Index images,
                           const Communicator& communicator,
                           const SessionObserver& observer);

// Warns on rank 0 where training ends before the rate has risen, or fallen, as [net] has it, or is
// no longer than its last epochs. A request with a longer schedule is part of a training.
void warn_of_early_end(const TrainingRequest& request,
                       const partitioner::TrainingOptions& training,
                       Index last_step,
                       const Communicator& communicator,
                       const SessionObserver& observer);

// Warns on rank 0 where steps up to the last would change nothing.
void warn_of_zero_rate(const TrainingRequest& request,
                       const partitioner::TrainingOptions& training,
                       Index first_step,
                       Index last_step,
                       const Communicator& communicator,
                       const SessionObserver& observer);

}  // namespace tessera::engine
