// Why ranks of a run may have ended though nothing is wrong with them.

#pragma once

#include <filesystem>

namespace tessera::engine {

// Whether the disk with the run folder has no room for another checkpoint, or hardly any at all.
// Where nobody can say, it has.
[[nodiscard]] bool lacks_room(const std::filesystem::path& run_folder);

}  // namespace tessera::engine
