// Files of the kernel that hold a number.

#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace tessera::engine {

// The number that a file begins with; nothing where it cannot be read.
[[nodiscard]] inline std::optional<double> sensor_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The first line; empty where it cannot be read.
[[nodiscard]] inline std::string sensor_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace tessera::engine
