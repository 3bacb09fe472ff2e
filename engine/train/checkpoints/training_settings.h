// What a model file says that changes what is learnt and not what network it is: optimizer,
// learning rate, augmentation, and numbers of layers that a network's fingerprint leaves out.

#pragma once

#include <map>
#include <string>

#include "partitioner/cfg/model_file.h"

namespace tessera::engine {

// [name]: value, as a model file writes both; of a layer with its number, "probability of layer 3".
// What has no effect beside the others, such as B1 without Adam, is left out, and so are batch,
// subdivisions and max_batches, which the command line may give instead.
using TrainingSettings = std::map<std::string, std::string>;

[[nodiscard]] TrainingSettings training_settings(
    const partitioner::TrainingOptions& training,
    const partitioner::AugmentationOptions& augmentation,
    const partitioner::Network& network);

}  // namespace tessera::engine
