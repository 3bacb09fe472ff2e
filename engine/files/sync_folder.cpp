#include "engine/files/sync_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

int sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) {
    return errno == EACCES ? 0 : errno;  // a folder may be writable and not readable
  }
  const int error = ::fsync(opened.number()) == 0 ? 0 : errno;
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

}  // namespace tessera::engine
