#include "engine/data/sets/picture_record.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/base/digest.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

constexpr Index kEndBytes = 1024;
constexpr Index kChunkBytes = 1 << 16;

// Fills `bytes` from place `begin` of the file.
void read_at(const RegularFile& file,
             Index begin,
             std::span<std::uint8_t> bytes,
             const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pread(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(begin));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      throw InputError(path.string(),
                       0,
                       count == 0
                           ? "this file was truncated while being read"
                           : "cannot read this file: " + std::generic_category().message(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    begin += count;
  }
}

// Adds the bytes [begin, end) of the file.
void add_bytes(const RegularFile& file,
               Index begin,
               Index end,
               const std::filesystem::path& path,
               Digest& digest) {
  std::vector<std::uint8_t> chunk(static_cast<std::size_t>(std::min(end - begin, kChunkBytes)));
  for (; begin < end; begin += std::ssize(chunk)) {
    chunk.resize(static_cast<std::size_t>(std::min(end - begin, kChunkBytes)));
    read_at(file, begin, chunk, path);
    digest.add(chunk);
  }
}

}  // namespace

PictureRecord record_of(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {};
  }
  Digest change;
  for (const auto value : {static_cast<std::uint64_t>(status.st_ino),
                           static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                           static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
                           static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                           static_cast<std::uint64_t>(status.st_ctim.tv_nsec)}) {
    change.add(value);
  }
  return {static_cast<Index>(status.st_size), change.value(), 0, false};
}

std::uint64_t content_digest(const std::filesystem::path& path, bool whole) {
  const RegularFile file(path, "a picture");
  const Index size = file.bytes();
  Digest digest;
  digest.add(static_cast<std::uint64_t>(size));
  if (whole || size <= 2 * kEndBytes) {
    add_bytes(file, 0, size, path, digest);
  } else {
    // Two pages are wanted, not what the system would read ahead of them.
    (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);
    add_bytes(file, 0, kEndBytes, path, digest);
    add_bytes(file, size - kEndBytes, size, path, digest);
  }
  return digest.value();
}

void expect_unchanged(const std::filesystem::path& path, const PictureRecord& before, bool whole) {
  const PictureRecord now = record_of(path);
  if (now.bytes == before.bytes && now.change == before.change) {
    return;
  }
  if (now.bytes < 0) {
    throw InputError(path.string(), 0, "this picture was removed after the run began: restore it");
  }
  // Copied back, touched or given to somebody else it may still be the same picture.
  const bool same = now.bytes == before.bytes && before.has_content &&
                    content_digest(path, whole) == before.content;
  if (!same) {
    throw InputError(path.string(),
                     0,
                     "this picture was changed after the run began: restore the old one and "
                     "continue from the last checkpoint, or train from scratch");
  }
}

}  // namespace tessera::engine
