// How a run is, as its folder says.

#pragma once

#include <filesystem>
#include <string>

namespace tessera::engine {

// "running", "finished", "interrupted" or "failed", as run.json of this folder has it; empty where
// that is missing or damaged.
[[nodiscard]] std::string state_of_run(const std::filesystem::path& folder);

}  // namespace tessera::engine
