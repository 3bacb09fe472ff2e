#include "engine/power/sysfs_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "engine/processes/descriptor.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

[[noreturn]] void throw_sysfs_error(const std::filesystem::path& path, int error) {
  throw InputError(path.string(), 0, fmt::format("cannot be read ({})", std::strerror(error)));
}

}  // namespace

// Not through a stream: that does not say why a read failed, and a sensor that is switched off or
// is gone fails there.
std::string line_of_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> bytes{};
  const ssize_t count =
      file.is_open() ? ::read(file.number(), bytes.data(), bytes.size()) : ssize_t{-1};
  if (count < 0) {
    throw_sysfs_error(path, errno);
  }
  const std::string text(bytes.data(), static_cast<std::size_t>(count));
  return text.substr(0, text.find('\n'));
}

double number_of_file(const std::filesystem::path& path) {
  const std::string line = line_of_file(path);
  const auto number = finite_number(line);
  if (!number) {
    throw InputError(
        path.string(), 0, fmt::format("\"{}\" is not a number", printable_start(line)));
  }
  return *number;
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace tessera::engine
