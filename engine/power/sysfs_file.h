// Files that the kernel writes as they are read, a line each.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "partitioner/base/path_kinds.h"

namespace tessera::engine {

// The first line, without its end. Throws InputError that names the file and the reason.
[[nodiscard]] std::string line_of_file(const std::filesystem::path& path);

// The number that is its first line; otherwise likewise.
[[nodiscard]] double number_of_file(const std::filesystem::path& path);

// The paths in a folder, by name; none where there is no such folder.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

}  // namespace tessera::engine
