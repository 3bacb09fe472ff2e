// A process that this one starts, with descriptors of its own choice, and that does not outlive it.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "engine/processes/line_stream.h"

namespace tessera::engine {

struct ProgramToStart {
  std::vector<std::string> words = {};                  // the first names the program, by PATH too
  std::map<std::string, std::string> environment = {};  // beside this process's own
  std::string folder = {};                              // to work in; empty: this process's
  bool idle = false;                  // takes what processor time nothing else wants
  bool ignores_stop_signals = false;  // ends with what it connects, not before
  // Descriptors of the new process, and which of this process's they are; -1: /dev/null, which are
  // also those from 0 to 2 that are not named. All others are closed.
  std::vector<std::pair<int, int>> descriptors = {};
};

struct ProcessEnd {
  int code = 0;
  int signal = 0;  // 0: it ended by itself
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

class ChildProcess {
 public:
  // Throws InputError where it cannot be started; a program that is not there ends with 127. The
  // process leads a group of its own, and is killed when the thread that started it ends.
  explicit ChildProcess(const ProgramToStart& program);
  // Kills what is left of its group, and collects it.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) = delete;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  // Becomes readable when it has ended.
  [[nodiscard]] int descriptor() const { return descriptor_.number(); }

  // To the process alone, or to all of its group.
  void signal(int number) const;
  void kill_group() const;

  // How it ended; nothing while it has not.
  const std::optional<ProcessEnd>& look();
  // The same, and waits for its end, but no longer than that.
  const std::optional<ProcessEnd>& wait(double seconds);

 private:
  pid_t id_ = -1;
  Descriptor descriptor_;
  std::optional<ProcessEnd> end_;
};

// A process that takes and prints lines. Its messages are in English, whatever the user's language.
struct LineProcess {
  ChildProcess process;
  LineStream lines;
  LineStream errors;  // standard error
};
// Throws InputError.
[[nodiscard]] LineProcess start_line_process(const std::vector<std::string>& words);

// Starts a program that outlives this process, in a session of its own.
void start_apart(const ProgramToStart& program);

// The file that this process runs.
[[nodiscard]] std::string program_path();

// Two ends of a socket; the second is for a child. Throws InputError.
[[nodiscard]] std::pair<Descriptor, Descriptor> socket_pair();

}  // namespace tessera::engine
