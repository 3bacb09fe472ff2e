#include "engine/setup/device_dialog.h"

#include <algorithm>
#include <poll.h>
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
          .folder = "",
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
    if (auto message = message_in(line)) {
      answer = Answer{std::move(*message), time_of_day_s()};
      has_answered_ = true;
    } else if (!has_answered_) {
      keep(greeting_, line);
    }
  }
  return answer;
}

std::optional<ProcessEnd> DeviceDialog::end() {
  constexpr int kSecond_ms = 1000;
  if (stream_.is_over() && !process_.look()) {
    pollfd ended{process_.descriptor(), POLLIN, 0};
    ::poll(&ended, 1, kSecond_ms);
  }
  return process_.look();
}

std::vector<std::optional<DeviceDialog::Answer>> ask_all(const std::vector<Question>& questions,
                                                         double timeout_s) {
  constexpr double kMilliseconds = 1e3;
  constexpr double kBetweenLooks_s = 0.2;
  std::vector<std::optional<DeviceDialog::Answer>> answers(questions.size());
  std::vector<bool> waits(questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    waits[i] = questions[i].device != nullptr;
    if (waits[i]) {
      questions[i].device->ask(questions[i].text);
    }
  }
  const double end_s = now_s() + timeout_s;
  for (;;) {
    std::vector<pollfd> descriptors;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (!waits[i]) {
        continue;
      }
      DeviceDialog& device = *questions[i].device;
      answers[i] = device.look();
      waits[i] = !answers[i] && !device.is_over();
      if (waits[i]) {
        const LineStream& stream = device.stream();
        const auto events = static_cast<short>(POLLIN | (stream.wants_to_write() ? POLLOUT : 0));
        // What has ended is readable for ever.
        descriptors.push_back({stream.is_over() ? -1 : stream.in(), events, 0});
        descriptors.push_back(
            {device.error_stream().is_over() ? -1 : device.error_stream().in(), POLLIN, 0});
        device.flush();
      }
    }
    const double left_s = end_s - now_s();
    if (descriptors.empty() || left_s <= 0) {
      return answers;
    }
    // The end of a process wakes nobody up.
    ::poll(descriptors.data(),
           descriptors.size(),
           static_cast<int>(kMilliseconds * std::min(left_s, kBetweenLooks_s)) + 1);
  }
}

}  // namespace tessera::engine
