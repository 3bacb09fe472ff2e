// Bytes written to an open file, however often the system has to be asked.

#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sys/types.h>
#include <unistd.h>

namespace tessera::engine {

inline constexpr mode_t kNewFileMode = 0666;  // less the user's umask
inline constexpr std::size_t kLargestWrite = std::size_t{1}
                                             << 28U;  // bytes for one call of the system

// What this process has written into files so far, by write_all() and as count_written() was told.
[[nodiscard]] std::int64_t bytes_written();
void count_written(std::int64_t bytes);

// Writes all of `bytes`, at `offset` or, where it is negative, where the file stands. 0, or the
// number of the system's error.
[[nodiscard]] inline int write_all(int descriptor,
                                   std::span<const std::byte> bytes,
                                   off_t offset = -1) {
  while (!bytes.empty()) {
    const std::size_t most = bytes.size() < kLargestWrite ? bytes.size() : kLargestWrite;
    const ssize_t count = offset < 0 ? ::write(descriptor, bytes.data(), most)
                                     : ::pwrite(descriptor, bytes.data(), most, offset);
    if (count < 0) {
      if (errno != EINTR) {
        return errno;
      }
      continue;
    }
    count_written(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += offset < 0 ? 0 : count;
  }
  return 0;
}

}  // namespace tessera::engine
