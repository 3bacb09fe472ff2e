// A conversation with a process on a device, or on this one: questions and answers are a line each.
// Several devices are asked at the same time.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/cluster/protocol.h"
#include "engine/processes/child_process.h"

namespace tessera::engine {

class DeviceDialog {
 public:
  // Starts the words' process. Throws InputError.
  explicit DeviceDialog(const std::vector<std::string>& words)
      : process_(start_line_process(words)) {}

  void ask(const to_device::Question& question) { process_.lines.send(line_of(question)); }

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
    return process_.lines.is_over() &&
           (process_.errors.is_over() || process_.process.look().has_value());
  }

  // How the process ended; nothing while it has not. Where its output is over, its end is waited
  // for, but for a second at most.
  [[nodiscard]] std::optional<ProcessEnd> end();

  void add_to(PollSet& waits) const {
    waits.add(process_.lines);
    waits.add(process_.errors);
  }
  void flush() { process_.lines.flush(); }

 private:
  LineProcess process_;
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
