#include "engine/run_log/run_folder.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"
#include "engine/files/own_file.h"
#include "engine/run_files/metrics.h"
#include "engine/run_files/names.h"
#include "engine/system/host_name.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

std::string holder_text() {
  return fmt::format("process {} on {} since {:%Y-%m-%d %H:%M:%S}",
                     ::getpid(),
                     host_name(),
                     fmt::localtime(std::time(nullptr)));
}

// What the process that holds the lock has written into it.
std::string holder_of(int descriptor) {
  std::array<char, 200> text{};
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string_view holder(text.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  return holder.empty() ? "another process" : printable(holder.substr(0, holder.find('\n')));
}

// Whether two paths name one folder.
bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

}  // namespace

// Whole before anything can fail: what fails is then tidied up by the destructor.
RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  absolute_ = fs::absolute(path_, error).lexically_normal();
}

RunFolder::RunFolder(fs::path path, const fs::path& resume, bool replace)
    : RunFolder(std::move(path)) {
  make();
  lock();
  expect_free(resume, replace);
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) {
    if (names_open_file(path_ / run_file::kLock, lock_)) {
      ::unlink((path_ / run_file::kLock).c_str());  // before the lock goes with the descriptor
    }
    ::close(lock_);
  }
  if (folder_ >= 0) {
    if (made_ && is_there()) {
      ::rmdir(path_.c_str());  // fails where something is in it
    }
    ::close(folder_);
  }
}

void RunFolder::make() {
  std::error_code error;
  made_ = fs::create_directories(path_, error);
  if (!error) {
    folder_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    error = folder_ < 0 ? std::error_code(errno, std::generic_category()) : error;
  }
  if (error) {
    throw InputError(fmt::format("--run {}: cannot create this folder ({}): choose a writable one",
                                 path_.string(),
                                 error.message()));
  }
}

void RunFolder::lock() {
  // Who looks whether a run is in progress has the lock for a moment, too.
  constexpr int kLooks = 10;
  constexpr std::chrono::milliseconds kBetweenLooks{10};
  const fs::path file = path_ / run_file::kLock;
  for (int look = 1; lock_ < 0;) {
    OwnFile own = open_own_file(file);
    if (!own.descriptor.is_open()) {
      throw InputError(file.string(),
                       0,
                       fmt::format("cannot be written ({}): choose a writable folder",
                                   std::generic_category().message(own.error)));
    }
    if (own.locked_by_another) {
      const std::string holder = holder_of(own.descriptor.number());
      if (look++ < kLooks) {
        std::this_thread::sleep_for(kBetweenLooks);
        continue;
      }
      throw InputError(path_.string(),
                       0,
                       fmt::format("another run is using this folder, {}: wait for it to end, stop "
                                   "it, or give another folder with --run",
                                   holder));
    }
    lock_ = own.descriptor.release();
  }
  const std::string text = holder_text() + "\n";
  // The text is for people: without room for it the lock holds all the same.
  (void)!::ftruncate(lock_, 0);
  (void)!::pwrite(lock_, text.data(), text.size(), 0);
}

void RunFolder::expect_free(const fs::path& resume, bool replace) {
  goes_on_ =
      !resume.empty() && same_folder(resume.has_parent_path() ? resume.parent_path() : ".", path_);
  if (goes_on_ || replace) {
    return;
  }
  std::vector<std::string> found;
  if (const auto step = is_file(path_ / run_file::kMetrics)
                            ? last_recorded_step(path_ / run_file::kMetrics)
                            : std::nullopt) {
    found.push_back(fmt::format("{} up to step {}", run_file::kMetrics, *step));
  }
  const char* const latest = is_file(path_ / run_file::kCheckpoint) ? run_file::kCheckpoint
                                                                    : run_file::kPreviousCheckpoint;
  const bool resumable = is_file(path_ / latest);
  for (const char* name : {latest, run_file::kBest}) {
    if (is_file(path_ / name)) {
      found.emplace_back(name);
    }
  }
  if (!found.empty()) {
    throw InputError(
        path_.string(),
        0,
        fmt::format("holds an earlier run ({}): {}replace it with --force, or give another folder "
                    "with --run",
                    fmt::join(found, ", "),
                    resumable ? fmt::format("continue it with --resume {}, ",
                                            shell_word((path_ / latest).string()))
                              : ""));
  }
}

void RunFolder::prepare() {
  for (const RunFile& file : kRunFiles) {
    if (file.replaced_whole) {
      const AtomicFile writable(path_ / file.name);
    }
  }
  if (goes_on_) {
    return;
  }
  for (const RunFile& file : kRunFiles) {
    if (!file.of_one_run) {
      continue;
    }
    std::error_code error;
    fs::remove(path_ / file.name, error);
    if (error) {
      throw InputError((path_ / file.name).string(), 0, "cannot be removed: " + error.message());
    }
  }
}

bool RunFolder::is_there() const {
  return names_open_file(path_, folder_);
}

fs::path RunFolder::make_rescue_folder(int attempt) const {
  const fs::path name =
      absolute_.filename().empty() ? absolute_.parent_path().filename() : absolute_.filename();
  const fs::path parent = absolute_.filename().empty() ? absolute_.parent_path().parent_path()
                                                       : absolute_.parent_path();
  std::error_code error;
  const std::array<fs::path, kRescueAttempts> places = {
      parent, fs::current_path(error), fs::temp_directory_path(error)};
  const fs::path place = places.at(static_cast<std::size_t>(attempt));
  constexpr int kMostFolders = 1000;
  for (int number = 1; number < kMostFolders; ++number) {
    const std::string end = number == 1 ? "-rescued" : fmt::format("-rescued-{}", number);
    const fs::path folder = place / (name.string() + end);
    if (fs::create_directory(folder, error)) {
      return folder;
    }
    if (error) {
      break;
    }
  }
  throw InputError(place.string(), 0, "cannot create a folder here: " + error.message());
}

}  // namespace tessera::engine
