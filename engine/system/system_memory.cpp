#include "engine/system/system_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "engine/system/control_groups.h"

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

// What the two versions of control groups call things.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* idle_files;
};
constexpr GroupFiles kVersion1{
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

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

Index left_by_groups(const Path& root) {
  Index left = kUnlimited;
  for_each_group(root, "memory", [&left](const Path& folder) {
    left = std::min({left, left_in_group(folder, kVersion1), left_in_group(folder, kVersion2)});
  });
  return left;
}

}  // namespace

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
