#include "engine/files/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "engine/files/file_error.h"
#include "engine/files/own_file.h"
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

// Renaming onto a device or a pipe would replace it; onto a symbolic link it does no harm.
void check_target(const std::filesystem::path& target) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(target, error);
  if (std::filesystem::is_directory(status)) {
    throw InputError(target.string(), 0, "is a folder; give the path of a file to write");
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_symlink(status)) {
    throw InputError(target.string(), 0, "is not a regular file; give the path of a file to write");
  }
  if (target.filename().empty()) {
    throw InputError(target.string(), 0, "names no file; give the path of a file");
  }
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target, Links links)
    : AtomicFile(target, links, Left()) {
  if (::ftruncate(file_.number(), 0) != 0) {
    fail("cannot be written", errno);
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& target, Links links, Left /*left*/)
    : target_(links == Links::Follow ? followed(target) : target) {
  check_target(target_);
  temporary_ = target_;
  temporary_ += ".partial";
  open_temporary();
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::open_temporary() {
  OwnFile own = open_own_file(temporary_);
  if (!own.descriptor.is_open()) {
    throw_file_error(target_, "cannot be written", own.error);
  }
  if (own.locked_by_another) {
    throw InputError(target_.string(),
                     0,
                     "is being written by another run; wait for it or choose another folder");
  }
  file_ = std::move(own.descriptor);
}

void AtomicFile::discard() noexcept {
  if (file_.is_open()) {
    ::unlink(temporary_.c_str());  // before the lock goes with the descriptor
    file_.close();
  }
}

void AtomicFile::fail(std::string_view action, int error_number) {
  discard();
  throw_file_error(target_, action, error_number);
}

int AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  int error = write_all(file_.number(), bytes, offset);
  if ((error == ENOSPC || error == EDQUOT) && made_room()) {
    error = write_all(file_.number(), bytes, offset);
  }
  return error;
}

bool AtomicFile::has_old() const {
  struct stat old = {};
  return ::lstat(target_.c_str(), &old) == 0 && S_ISREG(old.st_mode);
}

bool AtomicFile::made_room() const {
  return !previous_.empty() && has_old() && ::unlink(previous_.c_str()) == 0;
}

// The number of the system's error, or 0.
int AtomicFile::keep_old() const {
  if (previous_.empty() || !has_old()) {
    return 0;
  }
  std::filesystem::path second_name = previous_;
  second_name += ".partial";
  ::unlink(second_name.c_str());
  if (::link(target_.c_str(), second_name.c_str()) != 0) {  // FAT has no hard links
    return ::rename(target_.c_str(), previous_.c_str()) == 0 ? 0 : errno;
  }
  const int error = ::rename(second_name.c_str(), previous_.c_str()) == 0 ? 0 : errno;
  ::unlink(second_name.c_str());  // it stays where both names were of one file already
  return error;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  expects(file_.is_open(), "nothing is written after commit or an error");
  if (const int error = write_at(end_, bytes); error != 0) {
    fail("cannot be written, the old file is kept", error);
  }
  end_ += std::ssize(bytes);
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::overwrite(std::int64_t offset, std::span<const std::byte> bytes) {
  expects(file_.is_open(), "nothing is written after commit or an error");
  if (const int error = write_at(offset, bytes); error != 0) {
    fail("cannot be written, the old file is kept", error);
  }
}

void AtomicFile::commit() {
  expects(file_.is_open(), "a file is committed once, and not after an error");
  // Closing a duplicate reports what closing would (a network's full disk), while the lock stays.
  if (::fsync(file_.number()) != 0 || ::close(::dup(file_.number())) != 0) {
    fail("cannot be written, the old file is kept", errno);
  }
  if (const int error = keep_old(); error != 0) {
    fail("cannot be replaced, the old file is kept", error);
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    const int error = errno;
    if (!previous_.empty() && !has_old()) {
      (void)!::rename(previous_.c_str(), target_.c_str());
    }
    errno = error;
    fail("cannot be replaced, the old file is kept", errno);
  }
  file_.close();
  const int folder_error = sync_folder(folder_of(target_));
  if (folder_error != 0) {
    throw_file_error(target_, "is written, but its folder cannot be synced", folder_error);
  }
}

void AtomicFile::finish_left(const std::filesystem::path& target,
                             const std::filesystem::path& previous,
                             const std::function<bool(const std::filesystem::path&)>& is_whole) {
  AtomicFile file(target, Links::Replace, Left());
  if (is_whole(file.temporary_)) {
    file.keep_old_as(previous);
    file.commit();
  }
}

void write_atomically(const std::filesystem::path& target, std::string_view text, Links links) {
  AtomicFile file(target, links);
  file.write(text);
  file.commit();
}

}  // namespace tessera::engine
