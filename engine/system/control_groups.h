// The control groups of this process, of version 1 or 2.

#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace tessera::engine {

// Calls `look` with the folder of each group that limits what `controller` controls for this
// process, and of each that it lies in. In a container its path may not be there: then the top of
// what the container sees is its group. `root` is the folder that /proc and /sys lie in.
void for_each_group(const std::filesystem::path& root,
                    const std::string& controller,
                    const std::function<void(const std::filesystem::path& folder)>& look);

}  // namespace tessera::engine
