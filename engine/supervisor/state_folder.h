// The folder in memory (/dev/shm) in which the ranks of a run on this device keep their state, so
// that it outlives them. One agent has it at a time; a later one of the same run takes it over.

#pragma once

#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/processes/descriptor.h"

namespace tessera::engine {

// 16 hexadecimal digits, as a run's number is written.
[[nodiscard]] bool is_run_number(std::string_view text);
[[nodiscard]] std::string new_run_number();

// The signal by which an agent learns that another one has its place: its ranks are to be killed.
inline constexpr int kFollowed = SIGUSR1;

// Of whom an agent is: words without blanks.
struct FolderHolder {
  std::string supervisor;
  std::string host;  // as the host file has it
};

class StateFolder {
 public:
  // Makes the folder or takes it over from an agent that is left, which is ended first. Removes
  // those of other runs of this user that no agent has and that are older than an hour. Throws
  // InputError, also where an agent has it that the same supervisor has started by another name of
  // this machine.
  explicit StateFolder(const std::string& run,
                       const FolderHolder& holder = {},
                       const std::filesystem::path& parent = "/dev/shm");
  ~StateFolder() = default;
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // With all that is in it.
  void remove();
  // What ranks have kept: of steps that others have gone on from without this device.
  void forget_kept() const;

  // The one that this user has, or would make: under another name where somebody else has taken
  // that of the run.
  [[nodiscard]] static std::filesystem::path of_run(
      const std::string& run, const std::filesystem::path& parent = "/dev/shm");

 private:
  void lock(const FolderHolder& holder);

  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace tessera::engine
