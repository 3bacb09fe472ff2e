// Which checkpoint of a run folder is whole: the newest one and the one before it are there, and a
// power cut, a worn card or a full disk may have damaged either. All of this reads on this rank
// alone.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/train/checkpoints/checkpoint.h"

namespace tessera::engine {

// Reads all of a checkpoint once: header, sizes, digests and numbers. Returns the step after which
// it was taken; throws InputError with file and fault.
[[nodiscard]] Index expect_intact_checkpoint(const std::filesystem::path& file);

struct IntactCheckpoint {
  std::filesystem::path file;
  Index step = 0;
  std::vector<std::string> refused;  // the others that were looked at: which, and why
};

// The newest intact one of a run folder. Throws InputError where there is none, with what is wrong
// with those that are there.
[[nodiscard]] IntactCheckpoint newest_intact_checkpoint(const std::filesystem::path& run_folder);

// Adds to the message about a damaged checkpoint which other one of its folder is intact, if any.
[[nodiscard]] std::string with_intact_other(const std::string& problem,
                                            const std::filesystem::path& damaged);

}  // namespace tessera::engine
