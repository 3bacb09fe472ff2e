#include "engine/processes/launcher.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>

#include "engine/system/system_memory.h"

namespace tessera::engine {

namespace {

int parent_of(int process) {
  const auto parent = number_after("/proc/" + std::to_string(process) + "/status", "PPid:");
  return static_cast<int>(parent.value_or(0));
}

bool is_launcher(int process) {
  const std::vector<std::string> words = words_of_process(process);
  const std::string_view path = words.empty() ? "" : std::string_view(words[0]);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.substr(0, 7) == "mpiexec" || name.substr(0, 6) == "mpirun";
}

void signal_children(int parent, int signal) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && parent_of(process) == parent) {
      ::kill(process, signal);
    }
  }
}

// Whether it was gone within the time.
bool gone_within(int process, unsigned seconds) {
  constexpr unsigned kLooksEachSecond = 10;
  for (unsigned look = 0; look < seconds * kLooksEachSecond; ++look) {
    if (::kill(process, 0) != 0 || !is_launcher(process)) {
      return true;
    }
    ::usleep(1'000'000 / kLooksEachSecond);
  }
  return false;
}

}  // namespace

std::vector<std::string> words_of_process(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

int launcher_process() {
  constexpr int kGenerations = 4;  // the launcher, its proxy, and perhaps a shell between
  int process = ::getppid();
  for (int i = 0; i < kGenerations && process > 1; ++i, process = parent_of(process)) {
    if (is_launcher(process)) {
      return process;
    }
  }
  return 0;
}

void end_launcher_after(int launcher) {
  constexpr unsigned kPatience_s = 4;
  if (launcher == 0 || ::fork() != 0) {
    return;
  }
  ::setsid();  // not among those that the launcher ends with this process
  const long files = ::sysconf(_SC_OPEN_MAX);
  for (int file = 0; file < std::min(files, 4096L); ++file) {
    ::close(file);  // it waits for the ends of pipes
  }
  if (!gone_within(launcher, kPatience_s)) {
    signal_children(launcher, SIGTERM);
    if (!gone_within(launcher, kPatience_s)) {
      signal_children(launcher, SIGKILL);
      ::kill(launcher, SIGKILL);
    }
  }
  ::_exit(0);
}

}  // namespace tessera::engine
