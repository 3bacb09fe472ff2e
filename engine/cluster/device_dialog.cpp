#include "engine/cluster/device_dialog.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "engine/system/clock.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostLines = 100;  // that are kept of what nobody asked for

// ssh ends its lines for a terminal.
std::string without_return(std::string line) {
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
  }
  return line;
}

void keep(std::vector<std::string>& lines, const std::string& line) {
  if (lines.size() < kMostLines) {
    lines.push_back(without_return(line));
  }
}

ProgramToStart program_of(const std::vector<std::string>& words, int both, int errors) {
  return {.words = words,
          .environment = {{"LC_ALL", "C"}},  // messages are read, and compared
          .descriptors = {{STDIN_FILENO, both}, {STDOUT_FILENO, both}, {STDERR_FILENO, errors}}};
}

}  // namespace

DeviceDialog::Ends DeviceDialog::new_ends() {
  auto [mine, theirs] = socket_pair();
  auto [my_errors, their_errors] = socket_pair();
  return {std::move(mine), std::move(theirs), std::move(my_errors), std::move(their_errors)};
}

DeviceDialog::DeviceDialog(const std::vector<std::string>& words)
    : DeviceDialog(words, new_ends()) {}

DeviceDialog::DeviceDialog(const std::vector<std::string>& words, Ends ends)
    : process_(program_of(words, ends.theirs.number(), ends.their_errors.number())),
      stream_(std::move(ends.mine)),
      errors_(std::move(ends.my_errors)) {}

std::optional<DeviceDialog::Answer> DeviceDialog::look() {
  for (const std::string& line : errors_.receive()) {
    keep(error_lines_, line);
  }
  std::optional<Answer> answer;
  for (const std::string& line : stream_.receive()) {
    if (is_answer(line)) {
      answer = Answer{line, time_of_day_s()};
      has_answered_ = true;
    } else if (!has_answered_) {
      keep(greeting_, line);
    }
  }
  return answer;
}

std::optional<ProcessEnd> DeviceDialog::end() {
  constexpr double kLongest_s = 1;
  return process_.wait(stream_.is_over() ? kLongest_s : 0);
}

std::vector<std::optional<DeviceDialog::Answer>> ask_all(const std::vector<AskedDevice>& asked,
                                                         double timeout_s) {
  constexpr double kBetweenLooks_s = 0.2;  // the end of a process wakes nobody up
  std::vector<std::optional<DeviceDialog::Answer>> answers(asked.size());
  std::vector<bool> waits(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    waits[i] = asked[i].device != nullptr;
    if (waits[i]) {
      asked[i].device->ask(asked[i].question);
    }
  }
  const double end_s = now_s() + timeout_s;
  for (;;) {
    PollSet looks;
    bool any_waits = false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!waits[i]) {
        continue;
      }
      DeviceDialog& device = *asked[i].device;
      answers[i] = device.look();
      waits[i] = !answers[i] && !device.is_over();
      if (waits[i]) {
        any_waits = true;
        device.add_to(looks);
        device.flush();
      }
    }
    const double left_s = end_s - now_s();
    if (!any_waits || left_s <= 0) {
      return answers;
    }
    looks.wait(std::min(left_s, kBetweenLooks_s));
  }
}

}  // namespace tessera::engine
