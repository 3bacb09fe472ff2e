#include "engine/power/command_output.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostBytes = 65536;
constexpr int kLook_ms = 20;  // from one look at the clock and at `stop` to the next

[[noreturn]] void refuse_command(const std::string& command, const std::string& message) {
  throw InputError(fmt::format("the command \"{}\" {}", printable_start(command), message));
}

// The end of a pipe that the command writes to.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw InputError(fmt::format("no pipe can be made ({})", std::strerror(errno)));
    }
  }
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int reader() const { return ends_[0]; }
  [[nodiscard]] int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// The command that runs, and is killed when this ends before it does.
class Shell {
 public:
  Shell(const std::string& command, int output) {
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    // Connections of MPI and pipes of the launcher are not for it.
    ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    std::string shell = "sh";
    std::string option = "-c";
    std::string text = command;
    const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
    const int error =
        ::posix_spawn(&process_, "/bin/sh", &files, &attributes, words.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
      process_ = 0;
      refuse_command(command, fmt::format("cannot be started ({})", std::strerror(error)));
    }
  }
  ~Shell() {
    if (process_ > 0) {
      ::kill(-process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // As waitpid() has it; nothing while it runs.
  [[nodiscard]] std::optional<int> status() {
    int status = 0;
    const pid_t ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == 0) {
      return std::nullopt;
    }
    process_ = 0;
    return ended < 0 ? 0 : status;  // who ignores SIGCHLD cannot know
  }

 private:
  pid_t process_ = 0;
};

// Until the end of what the command writes, or `more` says no.
template <class GoOn>
std::string read_all(int file, const std::string& command, const GoOn& go_on) {
  std::string text;
  while (go_on()) {
    pollfd look{file, POLLIN, 0};
    if (::poll(&look, 1, kLook_ms) <= 0) {
      continue;
    }
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(file, bytes.data(), bytes.size());
    if (count <= 0) {
      break;
    }
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) {
      refuse_command(command, "prints more than 64 KiB");
    }
  }
  return text;
}

}  // namespace

std::string command_output(const std::string& command,
                           double seconds,
                           const std::stop_token& stop) {
  const double end = now_s() + seconds;
  const auto go_on = [&] {
    if (stop.stop_requested()) {
      refuse_command(command, "was stopped");
    }
    if (now_s() > end) {
      refuse_command(command, fmt::format("took more than {:g} s", seconds));
    }
    return true;
  };
  Pipe pipe;
  Shell shell(command, pipe.writer());
  pipe.close_writer();
  std::string text = read_all(pipe.reader(), command, go_on);
  std::optional<int> status = shell.status();
  for (; !status && go_on(); status = shell.status()) {
    ::usleep(1000);
  }
  if (WIFSIGNALED(*status)) {
    refuse_command(command, fmt::format("was ended by signal {}", WTERMSIG(*status)));
  }
  if (WEXITSTATUS(*status) != 0) {
    refuse_command(command, fmt::format("exits with {}", WEXITSTATUS(*status)));
  }
  return text;
}

}  // namespace tessera::engine
