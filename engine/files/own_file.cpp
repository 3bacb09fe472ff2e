#include "engine/files/own_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/files/written_bytes.h"

namespace tessera::engine {

namespace {

constexpr int kTries = 100;  // against who puts links there as fast as they are removed

bool has_other_names(int descriptor) {
  struct stat open = {};
  return ::fstat(descriptor, &open) == 0 && S_ISREG(open.st_mode) && open.st_nlink > 1;
}

}  // namespace

bool names_open_file(const std::filesystem::path& path, int descriptor) {
  struct stat by_name = {};
  struct stat open = {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &open) == 0 &&
         by_name.st_dev == open.st_dev && by_name.st_ino == open.st_ino;
}

Descriptor open_without_links(const std::filesystem::path& path, int flags) {
  Descriptor file(
      ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kNewFileMode));
  struct stat open = {};
  if (file.is_open() &&
      (::fstat(file.number(), &open) != 0 || !S_ISREG(open.st_mode) || open.st_nlink != 1)) {
    file.close();
    errno = EMLINK;
  }
  return file;
}

OwnFile open_own_file(const std::filesystem::path& path) {
  for (int tries = 0; tries < kTries; ++tries) {
    Descriptor file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kNewFileMode));
    if (!file.is_open()) {
      if (errno == ELOOP && ::unlink(path.c_str()) == 0) {
        continue;  // a symbolic link
      }
      return {.error = errno};
    }
    if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return {.descriptor = std::move(file), .locked_by_another = true};
    }
    if (!names_open_file(path, file.number())) {  // the one that had it has renamed or removed it
      continue;
    }
    if (!has_other_names(file.number())) {
      return {.descriptor = std::move(file)};
    }
    if (::unlink(path.c_str()) != 0) {
      return {.error = errno};
    }
  }
  return {.error = ELOOP};
}

}  // namespace tessera::engine
