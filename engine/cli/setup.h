// What several subcommands begin with: reading the model, choosing the partition.

#pragma once

#include <optional>
#include <string>

#include "engine/cli/commands.h"
#include "partitioner/model_file.h"

namespace engine {

// Reads a model file on every rank and says its warnings on rank 0.
[[nodiscard]] partitioner::ModelFile load_model(const std::string& path, const Communicator& communicator);

// The same network for pictures of another size, "HxW". Throws InputError where layers do not fit it.
[[nodiscard]] partitioner::Network resized(const partitioner::Network& network, const std::string& size);

// The partition that the user chose, or a default: one tile for one rank, a grid as square as can be for more. Throws
// InputError where it does not fit network, batch or ranks.
[[nodiscard]] partitioner::Partition choose_partition(const partitioner::Network& network,
                                                      const PartitionChoice& choice,
                                                      int ranks,
                                                      Index batch);

// "0" or "0.5,0.5,0.5" style lists come in as numbers; this says which statistics "sync", "frozen" or "tile" mean.
[[nodiscard]] BatchNormMode parse_batch_norm(const std::string& text);

// Warns on rank 0 where some ranks have nothing to do.
void warn_of_idle_ranks(const partitioner::Partition& partition, const Communicator& communicator);

}  // namespace engine
