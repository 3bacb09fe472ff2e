// DIR/epochs.csv of a run: a row per epoch, and one for what is left of an epoch when the run ends.
// Rank 0 alone has it. What a row says of steps and tests comes from the lines that metrics.jsonl
// has gained since the row before, so that a run that goes on needs to remember nothing.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "partitioner/base/region.h"

namespace tessera::engine {

class EpochTable {
 public:
  // Keeps the rows up to `resumed_step` of a run that goes on, 0: none. `metrics` is that run's
  // file, with no lines of later steps; `score` is what it calls the result of a test, such as
  // "accuracy".
  EpochTable(std::filesystem::path path,
             std::filesystem::path metrics,
             std::string score,
             Index resumed_step);

  // Adds the row of the epoch that ends with this step and writes the file. Throws InputError.
  void add_epoch(Index step, double epoch);

  // Writes all rows into another file. Throws InputError.
  void copy_to(const std::filesystem::path& path) const;

 private:
  std::filesystem::path path_;
  std::filesystem::path metrics_;
  std::string score_;
  std::string rows_;  // with their titles
  Index last_step_ = 0;
  std::int64_t read_bytes_ = 0;  // of metrics_, up to the last row
};

// Whether such a file has a row of the epoch that ends with that step.
[[nodiscard]] bool has_epoch_row(const std::filesystem::path& path, Index step);

}  // namespace tessera::engine
