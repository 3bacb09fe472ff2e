#include "engine/files/file_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

const char* hint(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another folder, then run again";
    case EFBIG:
      return "; choose a folder on a file system without this limit, or raise 'ulimit -f'";
    case EMFILE:
      return "; raise 'ulimit -n'";
    case EACCES:
    case EPERM:
      return "; check who owns the file and its folder";
    case EROFS:
      return "; choose a writable folder";
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    case EIO:
      return "; the disk or its connection may be failing";
    default:
      return "";
  }
}

}  // namespace

void throw_file_error(const std::filesystem::path& path,
                      std::string_view action,
                      int error_number) {
  std::string message(action);
  message += ": ";
  message += std::generic_category().message(error_number);
  message += hint(error_number);
  throw InputError(path.string(), 0, message);
}

}  // namespace tessera::engine
