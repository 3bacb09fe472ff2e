// What a path leads to, links followed. Nothing where that cannot be found out.

#pragma once

#include <filesystem>
#include <system_error>

namespace tessera {

[[nodiscard]] inline bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

[[nodiscard]] inline bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

[[nodiscard]] inline bool is_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace tessera
