#include "engine/files/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "engine/files/file_error.h"
#include "engine/files/sync_folder.h"
#include "engine/files/written_bytes.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

static_assert(sizeof(off_t) == 8, "files may be larger than 2 GiB");

namespace {

// The file that a chain of symbolic links ends at; `path` itself where there is none or it cannot
// be followed.
std::filesystem::path followed(const std::filesystem::path& path) {
  std::error_code error;
  const bool link = std::filesystem::is_symlink(path, error);
  if (error || !link) {
    return path;
  }
  const std::filesystem::path end = std::filesystem::weakly_canonical(path, error);
  return error ? path : end;
}

// Renaming onto a device or a pipe would replace it.
void check_target(const std::filesystem::path& target) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  if (std::filesystem::is_directory(status)) {
    throw InputError(target.string(), 0, "is a folder; give the path of a file to write");
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw InputError(target.string(), 0, "is not a regular file; give the path of a file to write");
  }
  if (target.filename().empty()) {
    throw InputError(target.string(), 0, "names no file; give the path of a file");
  }
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Whether `path` still names the file that is open: another writer may have renamed it before it
// could be locked.
bool names_open_file(const std::filesystem::path& path, int descriptor) {
  struct stat by_name = {};
  struct stat open = {};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor, &open) == 0 &&
         by_name.st_dev == open.st_dev && by_name.st_ino == open.st_ino;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target) : target_(followed(target)) {
  check_target(target_);
  temporary_ = target_;
  temporary_ += ".partial";
  open_temporary();
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::open_temporary() {
  while (true) {
    const int descriptor = ::open(
        temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kNewFileMode);
    if (descriptor < 0) {
      throw_file_error(target_, "cannot be written", errno);
    }
    // Where the file system has no locks, do without.
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      throw InputError(target_.string(),
                       0,
                       "is being written by another run; wait for it or choose another folder");
    }
    if (names_open_file(temporary_, descriptor)) {
      descriptor_ = descriptor;
      break;
    }
    ::close(descriptor);
  }
  if (::ftruncate(descriptor_, 0) != 0) {
    fail("cannot be written", errno);
  }
}

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) {
    ::unlink(temporary_.c_str());  // before the lock goes with the descriptor
    ::close(descriptor_);
    descriptor_ = -1;
  }
}

void AtomicFile::fail(std::string_view action, int error_number) {
  discard();
  throw_file_error(target_, action, error_number);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  expects(descriptor_ >= 0, "nothing is written after commit or an error");
  if (const int error = write_all(descriptor_, bytes); error != 0) {
    fail("cannot be written, the old file is kept", error);
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::overwrite(std::int64_t offset, std::span<const std::byte> bytes) {
  expects(descriptor_ >= 0, "nothing is written after commit or an error");
  if (const int error = write_all(descriptor_, bytes, offset); error != 0) {
    fail("cannot be written, the old file is kept", error);
  }
}

void AtomicFile::commit() {
  expects(descriptor_ >= 0, "a file is committed once, and not after an error");
  // Closing a duplicate reports what closing would (a network's full disk), while the lock stays.
  if (::fsync(descriptor_) != 0 || ::close(::dup(descriptor_)) != 0) {
    fail("cannot be written, the old file is kept", errno);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail("cannot be replaced, the old file is kept", errno);
  }
  ::close(descriptor_);
  descriptor_ = -1;
  const int folder_error = sync_folder(folder_of(target_));
  if (folder_error != 0) {
    throw_file_error(target_, "is written, but its folder cannot be synced", folder_error);
  }
}

void write_atomically(const std::filesystem::path& target, std::string_view text) {
  AtomicFile file(target);
  file.write(text);
  file.commit();
}

}  // namespace tessera::engine
