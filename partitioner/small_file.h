// Text files that are read as a whole.

#pragma once

#include <filesystem>
#include <string>

namespace partitioner {

// All of a file of at most 64 MiB, in no more memory than it needs; `what` it should have been is
// for the message.
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path, const char* what);

}  // namespace partitioner
