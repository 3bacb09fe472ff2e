#include "engine/cluster/device_dialog.h"

#include <algorithm>
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

}  // namespace

std::optional<DeviceDialog::Answer> DeviceDialog::look() {
  for (const std::string& line : process_.errors.receive()) {
    keep(error_lines_, line);
  }
  std::optional<Answer> answer;
  for (const std::string& line : process_.lines.receive()) {
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
  return process_.process.wait(process_.lines.is_over() ? kLongest_s : 0);
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
