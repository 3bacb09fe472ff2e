// Memory of this machine and this process, as the kernel counts it.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "partitioner/base/region.h"

namespace tessera::engine {

// The number behind the word that a line of a file begins with, as in /proc/meminfo; nothing where
// there is none.
[[nodiscard]] std::optional<Index> number_after(const std::filesystem::path& path,
                                                const std::string& word);

// Bytes that programs may still take, as the kernel estimates it (MemAvailable), or what the
// control groups of this process leave, of version 1 or 2, where that is less. 0 where neither can
// be read. `root` is the folder that /proc and /sys lie in.
[[nodiscard]] Index free_memory_bytes(const std::filesystem::path& root = "/");

// What the control groups of this process leave alone; nothing where none has a limit.
[[nodiscard]] std::optional<Index> memory_left_by_groups(const std::filesystem::path& root = "/");

// Bytes of this process that are resident, and that were at most (VmRSS, VmHWM); 0 where the kernel
// does not say.
[[nodiscard]] Index resident_bytes();
[[nodiscard]] Index peak_resident_bytes();
// Of the former, what other processes may have in their memory, too: pages of shared memory that
// this one has touched (RssShmem).
[[nodiscard]] Index resident_shared_bytes();

}  // namespace tessera::engine
