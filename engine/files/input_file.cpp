#include "engine/files/input_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/files/file_error.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

static_assert(sizeof(off_t) == 8, "files may be larger than 2 GiB");

namespace {

constexpr std::size_t kLargestRead = std::size_t{1} << 28U;  // bytes for one call of the system

}  // namespace

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer; regular files do not care.
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_.is_open()) {
    throw_file_error(path_, "cannot be opened", errno);
  }
  struct stat status = {};
  const bool known = ::fstat(file_.number(), &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    throw InputError(path_.string(),
                     0,
                     "is not a regular file; give the path of a file, not of a folder or device");
  }
  size_ = status.st_size;
}

void InputFile::read(Index offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count =
        ::pread(file_.number(), out.data(), std::min(out.size(), kLargestRead), offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throw_file_error(path_, "cannot be read", errno);
    }
    if (count == 0) {
      throw InputError(path_.string(),
                       0,
                       fmt::format("ends at byte {}, {} bytes earlier than expected; copy it again",
                                   offset,
                                   out.size()));
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

}  // namespace tessera::engine
