// So that a file that was renamed survives a power cut under its new name.

#pragma once

#include <filesystem>

namespace tessera::engine {

// 0 or the error's number; some file systems cannot sync folders, which is no error.
[[nodiscard]] int sync_folder(const std::filesystem::path& folder);

}  // namespace tessera::engine
