#include "engine/supervisor/state_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/system/kept_files.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr const char* kLockName = "agent.lock";
constexpr std::size_t kRunDigits = 16;

std::string prefix() {
  return fmt::format("tessera-{}-", ::getuid());
}

bool is_own_folder(const std::filesystem::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::getuid() && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

Descriptor opened_lock(const std::filesystem::path& folder) {
  return Descriptor(::open(
      (folder / kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
}

struct AgentOfFolder {
  pid_t process = 0;
  FolderHolder holder;
};

AgentOfFolder agent_in(const Descriptor& lock) {
  std::array<char, 512> text{};
  AgentOfFolder agent;
  if (::pread(lock.number(), text.data(), text.size() - 1, 0) > 0) {
    std::istringstream(text.data()) >> agent.process >> agent.holder.supervisor >>
        agent.holder.host;
  }
  return agent;
}

void remove_abandoned(const std::filesystem::path& parent, const std::filesystem::path& mine) {
  constexpr auto kOld = std::chrono::hours(1);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code unknown;
    if (name.rfind(prefix(), 0) != 0 || entry.path() == mine || !is_own_folder(entry.path()) ||
        std::filesystem::file_time_type::clock::now() -
                std::filesystem::last_write_time(entry.path(), unknown) <
            kOld) {
      continue;
    }
    const Descriptor lock = opened_lock(entry.path());
    if (lock.is_open() && ::flock(lock.number(), LOCK_EX | LOCK_NB) == 0) {
      std::filesystem::remove_all(entry.path(), unknown);
    }
  }
}

}  // namespace

bool is_run_number(std::string_view text) {
  return text.size() == kRunDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string new_run_number() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::filesystem::path StateFolder::of_run(const std::string& run,
                                          const std::filesystem::path& parent) {
  if (!is_run_number(run)) {
    throw InputError("a run's number has 16 hexadecimal digits");
  }
  constexpr int kNames = 8;
  std::filesystem::path free;
  for (int name = kNames; name > 0; --name) {
    const std::filesystem::path path =
        parent / (prefix() + run + (name == 1 ? "" : fmt::format("-{}", name)));
    struct stat found {};
    if (is_own_folder(path)) {
      return path;
    }
    if (::lstat(path.c_str(), &found) != 0 || free.empty()) {
      free = path;
    }
  }
  return free;
}

StateFolder::StateFolder(const std::string& run,
                         const FolderHolder& holder,
                         const std::filesystem::path& parent)
    : path_(of_run(run, parent)) {
  if (::mkdir(path_.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    throw InputError(fmt::format("{}: cannot be made: {}",
                                 path_.string(),
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
  }
  if (!is_own_folder(path_)) {
    throw InputError(fmt::format("{} belongs to somebody else: remove it", path_.string()));
  }
  lock(holder);
  remove_abandoned(parent, path_);
}

void StateFolder::lock(const FolderHolder& holder) {
  constexpr int kLooks = 40;
  constexpr unsigned kBetween_us = 50'000;
  lock_ = opened_lock(path_);
  for (int look = 0; lock_.is_open() && ::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0; ++look) {
    const AgentOfFolder other = agent_in(lock_);
    if (!holder.supervisor.empty() && other.holder.supervisor == holder.supervisor &&
        other.holder.host != holder.host) {
      throw InputError(
          fmt::format("{} and {} are the same machine: name it once in the host file, with as many "
                      "ranks as it is to have: HOST:RANKS",
                      other.holder.host,
                      holder.host));
    }
    if (other.process > 1) {
      ::kill(other.process, look < kLooks / 2 ? kFollowed : SIGKILL);
    }
    if (look == kLooks) {
      throw InputError(fmt::format("{}: another agent of this run does not end", path_.string()));
    }
    ::usleep(kBetween_us);
  }
  const std::string mine = fmt::format("{} {} {}\n", ::getpid(), holder.supervisor, holder.host);
  if (!lock_.is_open() || ::ftruncate(lock_.number(), 0) != 0 ||
      ::pwrite(lock_.number(), mine.data(), mine.size(), 0) != std::ssize(mine)) {
    throw InputError(fmt::format("{}: cannot be written", (path_ / kLockName).string()));
  }
}

void StateFolder::forget_kept() const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (entry.path().extension() == kKeptEnding) {
      std::error_code gone;
      std::filesystem::remove(entry.path(), gone);
    }
  }
}

void StateFolder::remove() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace tessera::engine
