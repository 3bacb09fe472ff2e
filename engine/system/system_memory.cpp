#include "engine/system/system_memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace tessera::engine {

namespace {

using Path = std::filesystem::path;

constexpr Index kKibibyte = 1024;
constexpr Index kUnlimited = std::numeric_limits<Index>::max();

// The first word of a file, where that is a number: "max" is none.
std::optional<Index> number_in(const Path& path) {
  std::ifstream file(path);
  Index value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The number behind a word: lines of /proc/meminfo, /proc/self/status and memory.stat.
std::optional<Index> number_after(const Path& path, const std::string& word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, word.size(), word) == 0 && line.find_first_of(" \t") == word.size()) {
      return std::stoll(line.substr(word.size()));
    }
  }
  return std::nullopt;
}

// What the two versions of control groups call things.
struct GroupFiles {
  const char* mount;
  const char* limit;
  const char* used;
  const char* idle_files;
};
constexpr GroupFiles kVersion1{"sys/fs/cgroup/memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// What a group leaves. Files that nobody has read for a while give way.
Index left_in_group(const Path& folder, const GroupFiles& files) {
  const auto limit = number_in(folder / files.limit);
  const auto used = number_in(folder / files.used);
  if (!limit || !used) {
    return kUnlimited;
  }
  const Index idle = number_after(folder / "memory.stat", files.idle_files).value_or(0);
  return std::max<Index>(*limit - std::max<Index>(*used - idle, 0), 1);
}

// What a group and all that it lies in leave. In a container its path may not be there: then the
// top of what the container sees is its group.
Index left_in_groups(const Path& root, const GroupFiles& files, const std::string& group) {
  Index left = left_in_group(root / files.mount, files);
  Path folder = root / files.mount;
  for (const Path& part : Path(group).relative_path()) {
    folder /= part;
    left = std::min(left, left_in_group(folder, files));
  }
  return left;
}

// Lines are ID:CONTROLLERS:PATH; version 2 has the one without controllers.
Index left_by_groups(const Path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  Index left = kUnlimited;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_in_groups(root, kVersion2, group));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups(root, kVersion1, group));
    }
  }
  return left;
}

}  // namespace

Index free_memory_bytes(const Path& root) {
  const auto available = number_after(root / "proc/meminfo", "MemAvailable:");
  const Index left = left_by_groups(root);
  if (!available && left == kUnlimited) {
    return 0;
  }
  return std::min(left, available ? *available * kKibibyte : kUnlimited);
}

std::optional<Index> memory_left_by_groups(const Path& root) {
  constexpr Index kNoLimit = Index{1} << 62;  // version 1 has a number of this size for none
  const Index left = left_by_groups(root);
  return left < kNoLimit ? std::optional(left) : std::nullopt;
}

Index resident_bytes() {
  return kKibibyte * number_after("/proc/self/status", "VmRSS:").value_or(0);
}

Index peak_resident_bytes() {
  return kKibibyte * number_after("/proc/self/status", "VmHWM:").value_or(0);
}

Index resident_shared_bytes() {
  return kKibibyte * number_after("/proc/self/status", "RssShmem:").value_or(0);
}

}  // namespace tessera::engine
