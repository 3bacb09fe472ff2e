#include "engine/terminal/watched.h"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/processes/descriptor.h"
#include "engine/processes/launcher.h"

namespace tessera::engine {

namespace {

constexpr int kUsualColumns = 80;

std::optional<int> columns_of(int descriptor) {
  if (::isatty(descriptor) != 1) {
    return std::nullopt;
  }
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

// The terminal that is another process's standard output. Anything else is not opened.
std::optional<int> columns_of_output(int pid) {
  const std::string path = fmt::format("/proc/{}/fd/1", pid);
  struct stat what {};
  if (::stat(path.c_str(), &what) != 0 || !S_ISCHR(what.st_mode)) {
    return std::nullopt;
  }
  const Descriptor terminal(::open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  return columns_of(terminal.number());
}

}  // namespace

std::optional<int> watched_columns() {
  if (const auto columns = columns_of(STDOUT_FILENO)) {
    return columns;
  }
  struct stat own {};
  const bool by_pipe =
      ::fstat(STDOUT_FILENO, &own) == 0 && (S_ISFIFO(own.st_mode) || S_ISSOCK(own.st_mode));
  const bool started = std::getenv("PMI_RANK") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  const int launcher = by_pipe && started ? launcher_process() : 0;
  return launcher != 0 ? columns_of_output(launcher) : std::nullopt;
}

}  // namespace tessera::engine
