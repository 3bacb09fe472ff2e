#include "partitioner/base/regular_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

namespace tessera {

static_assert(sizeof(off_t) == 8, "files may be larger than 2 GiB");

namespace {

std::string_view irregular_kind(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "";
    case S_IFDIR:
      return "a folder";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "something other than a file";
  }
}

[[noreturn]] void throw_system_error(const std::filesystem::path& path,
                                     std::string_view what,
                                     int error) {
  throw InputError(
      path.string(),
      0,
      fmt::format(
          "cannot be read ({}): expected {}", std::generic_category().message(error), what));
}

[[noreturn]] void throw_irregular(const std::filesystem::path& path,
                                  std::string_view kind,
                                  std::string_view what) {
  throw InputError(
      path.string(), 0, fmt::format("cannot be read: this is {}, expected {}", kind, what));
}

}  // namespace

std::string_view irregular_kind(const std::filesystem::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? irregular_kind(status.st_mode) : "";
}

RegularFile::RegularFile(const std::filesystem::path& path, std::string_view what) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    throw_system_error(path, what, errno);
  }
  if (const std::string_view kind = irregular_kind(status.st_mode); !kind.empty()) {
    throw_irregular(path, kind, what);
  }
  // Something else may stand there by now; so it is opened without waiting, and looked at again.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor_ < 0) {
    throw_system_error(path, what, errno);
  }
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw_irregular(path, irregular_kind(status.st_mode), what);
  }
  bytes_ = status.st_size;
}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(std::exchange(other.bytes_, 0)) {}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::string read_regular_file(const std::filesystem::path& path,
                              std::string_view what,
                              Index most_bytes) {
  const RegularFile file(path, what);
  if (file.bytes() > most_bytes) {
    throw InputError(path.string(),
                     0,
                     fmt::format("has {}, expected {} of at most {}",
                                 readable_bytes(file.bytes()),
                                 what,
                                 readable_bytes(most_bytes)));
  }
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  std::size_t read = 0;
  while (read < text.size()) {
    const ssize_t count = ::read(file.descriptor(), text.data() + read, text.size() - read);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throw InputError(path.string(),
                       0,
                       fmt::format("cannot be read: {}", std::generic_category().message(errno)));
    }
    if (count == 0) {  // shorter than it said, as files of /sys are
      break;
    }
    read += static_cast<std::size_t>(count);
  }
  text.resize(read);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) {
    text.erase(0, kByteOrderMark.size());
  }
  return text;
}

}  // namespace tessera
