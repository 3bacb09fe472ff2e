#include "engine/processes/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "partitioner/base/errors.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not in every unistd.h

namespace tessera::engine {

namespace {

// What execve() takes, made before fork(): afterwards memory may not be allocated.
class TextList {
 public:
  explicit TextList(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) {
      pointers_.push_back(text.data());
    }
    pointers_.push_back(nullptr);
  }
  [[nodiscard]] char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (changes.count(text.substr(0, text.find('='))) == 0) {
      all.push_back(text);
    }
  }
  for (const auto& [name, value] : changes) {
    all.push_back(name);
    all.back() += '=';
    all.back() += value;
  }
  return all;
}

// In the new process. What is to become a low number may stand where another one has to go, so all
// go to high numbers first.
void place_descriptors(const std::vector<std::pair<int, int>>& wanted) {
  constexpr int kAbove = 16;
  const int null = ::fcntl(::open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD, kAbove);
  std::array<int, 16> high{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    high[i] = wanted[i].second < 0 ? null : ::fcntl(wanted[i].second, F_DUPFD, kAbove);
  }
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(null, standard);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ::dup2(high[i], wanted[i].first);
  }
  int first_free = STDERR_FILENO + 1;
  for (const auto& [number, from] : wanted) {
    first_free = std::max(first_free, number + 1);
  }
  ::syscall(SYS_close_range, static_cast<unsigned>(first_free), ~0U, 0);
}

// While one lives no signal is delivered to this thread, nor to the process that it starts
// meanwhile: one that came before that process has its own way with signals would be lost to this
// one's.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

constexpr int kNotStarted = 127;

[[noreturn]] void become(const ProgramToStart& program,
                         const TextList& words,
                         const TextList& environment) {
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const bool stops = number == SIGINT || number == SIGTERM || number == SIGHUP;
    std::signal(number, stops && program.ignores_stop_signals ? SIG_IGN : SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  place_descriptors(program.descriptors);
  if (program.idle) {
    const sched_param usual{};
    ::sched_setscheduler(0, SCHED_IDLE, &usual);
  }
  if (program.folder.empty() || ::chdir(program.folder.c_str()) == 0) {
    ::execvpe(words.data()[0], words.data(), environment.data());
  }
  ::_exit(kNotStarted);
}

}  // namespace

ChildProcess::ChildProcess(const ProgramToStart& program) {
  expects(!program.words.empty() && program.descriptors.size() <= 16, "a program can be started");
  const TextList words(program.words);
  const TextList environment(environment_with(program.environment));
  const pid_t parent = ::getpid();
  const SignalsHeld held;
  // As posix_spawn() does: fork() would have to mark all of a rank's memory as shared.
  id_ = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (id_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(kNotStarted);
    }
    become(program, words, environment);
  }
  if (id_ < 0) {
    throw InputError(fmt::format("{}: cannot be started: {}",
                                 program.words[0],
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  ::setpgid(id_, id_);
  descriptor_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, id_, 0)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      descriptor_(std::move(other.descriptor_)),
      end_(other.end_) {}

ChildProcess::~ChildProcess() {
  if (id_ > 0 && !end_) {
    kill_group();
    ::waitpid(id_, nullptr, 0);
  }
}

void ChildProcess::signal(int number) const {
  if (id_ > 0 && !end_) {
    ::kill(id_, number);
  }
}

void ChildProcess::kill_group() const {
  if (id_ > 0 && !end_) {
    ::kill(-id_, SIGKILL);
    ::kill(id_, SIGKILL);
  }
}

const std::optional<ProcessEnd>& ChildProcess::look() {
  int status = 0;
  // It cannot be told how it ended where SIGCHLD is ignored: well.
  if (!end_ && id_ > 0 && ::waitpid(id_, &status, WNOHANG) != 0) {
    ::kill(-id_, SIGKILL);  // what it has started itself
    end_ =
        WIFSIGNALED(status) ? ProcessEnd{0, WTERMSIG(status)} : ProcessEnd{WEXITSTATUS(status), 0};
  }
  return end_;
}

const std::optional<ProcessEnd>& ChildProcess::wait(double seconds) {
  if (!look()) {
    (void)is_ready(descriptor(), POLLIN, seconds);
  }
  return look();
}

void start_apart(const ProgramToStart& program) {
  const TextList words(program.words);
  const TextList environment(environment_with(program.environment));
  const SignalsHeld held;
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::fork() == 0) {
      become(program, words, environment);
    }
    ::_exit(0);
  }
  if (child > 0) {
    ::waitpid(child, nullptr, 0);
  }
}

std::string program_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::pair<Descriptor, Descriptor> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw InputError("no more sockets can be opened");
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

LineProcess start_line_process(const std::vector<std::string>& words) {
  auto [lines, their_lines] = socket_pair();
  auto [errors, their_errors] = socket_pair();
  return {ChildProcess({.words = words,
                        .environment = {{"LC_ALL", "C"}},
                        .descriptors = {{STDIN_FILENO, their_lines.number()},
                                        {STDOUT_FILENO, their_lines.number()},
                                        {STDERR_FILENO, their_errors.number()}}}),
          LineStream(std::move(lines)),
          LineStream(std::move(errors))};
}

}  // namespace tessera::engine
