#include "engine/cli/terminal.h"

#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

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

struct Process {
  std::string name;
  int parent = 0;
};

// /proc/PID/stat: the name stands in brackets and may hold any letter, the parent is the second
// word after it.
Process process(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > text.size()) {
    return {};
  }
  return {text.substr(open + 1, close - open - 1), std::atoi(text.c_str() + close + 4)};
}

// The mpiexec that started this process on this machine, by way of its proxy.
std::optional<int> launcher() {
  int pid = ::getppid();
  bool proxy = false;
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps && pid > 1; ++step) {
    const Process ancestor = process(pid);
    if (proxy && ancestor.name.starts_with("mpiexec")) {
      return pid;
    }
    proxy = proxy || ancestor.name.starts_with("hydra");
    pid = ancestor.parent;
  }
  return std::nullopt;
}

// The terminal that is another process's standard output. Anything else is not opened.
std::optional<int> columns_of_output(int pid) {
  const std::string path = fmt::format("/proc/{}/fd/1", pid);
  struct stat what {};
  if (::stat(path.c_str(), &what) != 0 || !S_ISCHR(what.st_mode)) {
    return std::nullopt;
  }
  const int terminal = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (terminal < 0) {
    return std::nullopt;
  }
  const auto columns = columns_of(terminal);
  ::close(terminal);
  return columns;
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
  const auto pid = by_pipe && started ? launcher() : std::nullopt;
  return pid ? columns_of_output(*pid) : std::nullopt;
}

}  // namespace tessera::engine
