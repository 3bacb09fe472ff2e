#include "engine/files/sync_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace tessera::engine {

int sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return errno == EACCES ? 0 : errno;  // a folder may be writable and not readable
  }
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

}  // namespace tessera::engine
