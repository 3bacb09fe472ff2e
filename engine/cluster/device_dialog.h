// A conversation with a process on a device, or on this one: questions and answers are a line each.
// Several devices are asked at the same time.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/protocol.h"
#include "engine/processes/child_process.h"
#include "engine/processes/line_stream.h"

namespace tessera::engine {

class DeviceDialog {
 public:
  // Starts the words' process. Throws InputError.
  explicit DeviceDialog(const std::vector<std::string>& words);

  void ask(const to_device::Question& question) { stream_.send(line_of(question)); }

  // Takes in what has come, and returns an answer that has; then the moment it was taken in is
  // known, by time_of_day_s().
  struct Answer {
    std::string line;
    double came_s = 0;
  };
  [[nodiscard]] std::optional<Answer> look();

  // Lines that came before the first answer, on standard output, and all of standard error.
  [[nodiscard]] const std::vector<std::string>& greeting() const { return greeting_; }
  [[nodiscard]] const std::vector<std::string>& errors() const { return error_lines_; }

  // Whether nothing more will come. A connection that a remote shell keeps for its next start may
  // hold standard error open.
  [[nodiscard]] bool is_over() {
    return stream_.is_over() && (errors_.is_over() || process_.look().has_value());
  }

  // How the process ended; nothing while it has not. Where its output is over, its end is waited
  // for, but for a second at most.
  [[nodiscard]] std::optional<ProcessEnd> end();

  void add_to(PollSet& waits) const {
    waits.add(stream_);
    waits.add(errors_);
  }
  void flush() { stream_.flush(); }

 private:
  struct Ends {
    Descriptor mine, theirs, my_errors, their_errors;
  };
  static Ends new_ends();
  DeviceDialog(const std::vector<std::string>& words, Ends ends);

  ChildProcess process_;
  LineStream stream_;
  LineStream errors_;
  bool has_answered_ = false;
  std::vector<std::string> greeting_;
  std::vector<std::string> error_lines_;
};

struct AskedDevice {
  DeviceDialog* device = nullptr;  // null: nobody is asked
  to_device::Question question = {};
};

// An answer to each question; nothing where the process has ended, or not answered in time.
[[nodiscard]] std::vector<std::optional<DeviceDialog::Answer>> ask_all(
    const std::vector<AskedDevice>& asked, double timeout_s);

}  // namespace tessera::engine
