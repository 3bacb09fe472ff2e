// What the end of an epoch leaves in a run folder: a test and a row of epochs.csv. An epoch is over
// when all of that is on the disk; a run that goes on makes up for what is not.
//
// The row is written last. The best weights alone may come after it, from a thread.

#pragma once

#include <filesystem>
#include <optional>

#include "engine/train/checkpoints/checkpoint.h"

namespace tessera::engine {

// Whether all is there of the epoch that ended with that step; with or without a test. On this rank
// alone.
[[nodiscard]] bool has_epoch_end(const std::filesystem::path& folder,
                                 const partitioner::Network& network,
                                 Index step,
                                 bool tests);

// The best test up to a step, as best_by_files() finds it in a run folder. On this rank alone.
struct BestFound {
  std::optional<BestSoFar> best;
  std::optional<Index> lost;  // the step of a better test whose weights are gone
};
[[nodiscard]] BestFound best_in_folder(const std::filesystem::path& folder,
                                       const partitioner::Network& network,
                                       Index step);

// The best test up to a step, by the lines about tests (`logged`) and the file of the best weights
// (`saved`). A file of a later test than the best one, or of one that is to come again, has
// replaced the weights that were the best: they count, since that test will replace them once more.
// Where the file is older, the weights are lost, and what is there is the best.
[[nodiscard]] std::optional<BestSoFar> best_by_files(const std::optional<BestSoFar>& logged,
                                                     const std::optional<BestSoFar>& saved,
                                                     Index step);

}  // namespace tessera::engine
