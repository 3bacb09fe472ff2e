#include "partitioner/small_file.h"

#include <array>
#include <fmt/format.h>
#include <fstream>
#include <system_error>

#include "partitioner/errors.h"

namespace partitioner {

namespace {

constexpr std::size_t kMostBytes = 64U << 20U;

}  // namespace

std::string read_small_file(const std::filesystem::path& path, const char* what) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw InputError(
        path.string(), 0, fmt::format("cannot be read: this is a folder, give a {}", what));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1U << 14U> piece{};
  while (file && text.size() <= kMostBytes) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > kMostBytes) {
    throw InputError(path.string(), 0, fmt::format("larger than 64 MiB: this is no {}", what));
  }
  if (!file.eof()) {
    throw InputError(path.string(), 0, fmt::format("cannot be read: give a {}", what));
  }
  return text;
}

}  // namespace partitioner
