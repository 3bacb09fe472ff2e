#include "engine/power/pmic_meter.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sstream>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/power/sysfs_file.h"
#include "engine/processes/command_output.h"
#include "engine/processes/descriptor.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

constexpr const char* kQuestion = "pmic_read_adc";

// A message of the firmware's property interface with one tag: a command and its answer.
struct CommandMessage {
  static constexpr std::uint32_t kGetCommandResult = 0x00030080;
  static constexpr std::size_t kLetters = 1024;

  std::uint32_t bytes = sizeof(CommandMessage);
  std::uint32_t code = 0;  // a request
  std::uint32_t tag = kGetCommandResult;
  std::uint32_t value_bytes = kLetters;
  std::uint32_t answer_bytes = 0;
  std::uint32_t error = 0;
  std::array<char, kLetters> text{};
  std::uint32_t end = 0;
};

std::string answer_of_mailbox(const std::filesystem::path& device) {
  const Descriptor file(::open(device.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    throw InputError(device.string(),
                     0,
                     fmt::format("cannot be opened ({}): add the user to the group video",
                                 std::strerror(errno)));
  }
  CommandMessage message;
  std::strcpy(message.text.data(), kQuestion);
  if (::ioctl(file.number(), _IOWR(100, 0, char*), &message) < 0) {
    throw InputError(device.string(), 0, fmt::format("does not answer ({})", std::strerror(errno)));
  }
  message.text.back() = 0;
  return message.text.data();
}

// "VDD_CORE_A current(7)=0.7879A": the rail and the number.
struct Sample {
  std::string rail;
  char unit = 0;  // 'A' or 'V'
  double value = 0;
};

std::optional<Sample> sample_in(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  std::string value;
  words >> name >> value;
  const std::size_t equals = value.find('=');
  if (name.size() < 3 || equals == std::string::npos || value.back() != name.back()) {
    return std::nullopt;
  }
  const auto number = finite_number(value.substr(equals + 1, value.size() - equals - 2));
  return number ? std::optional(Sample{name.substr(0, name.size() - 2), name.back(), *number})
                : std::nullopt;
}

// Other Raspberry Pis have the device as well, and refuse the question.
bool has_pmic(const std::filesystem::path& root) {
  const auto file = root / "proc/device-tree/model";
  const std::string model = is_there(file) ? line_of_file(file) : "";
  const auto begins = [&](const char* name) { return model.rfind(name, 0) == 0; };
  return begins("Raspberry Pi 5") || begins("Raspberry Pi Compute Module 5");
}

PowerMeter meter_of(double period_s, PowerMeter::Look look) {
  MeterDescription description;
  description.source = "pmic";
  description.period_s = period_s;
  return {description, std::move(look)};
}

}  // namespace

double pmic_board_w(const std::string& text) {
  std::map<std::string, std::map<char, double>> rails;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (const auto sample = sample_in(line)) {
      rails[sample->rail][sample->unit] = sample->value;
    }
  }
  double sum = 0;
  int complete = 0;
  for (auto& [name, values] : rails) {
    if (values.count('A') > 0 && values.count('V') > 0) {
      sum += values['A'] * values['V'];
      ++complete;
    }
  }
  constexpr int kRails = 12;
  if (complete < kRails) {
    throw InputError(fmt::format("the firmware's answer to {} has {} of {} rails: \"{}\"",
                                 kQuestion,
                                 complete,
                                 kRails,
                                 printable_start(text)));
  }
  return 1.1451 * sum + 0.5879;
}

std::optional<PowerMeter> find_pmic_meter(const std::filesystem::path& root, double command_s) {
  if (!has_pmic(root)) {
    return std::nullopt;
  }
  const auto device = root / "dev/vcio";
  const auto program = root / "usr/bin/vcgencmd";
  constexpr double kPeriod_s = 0.1;
  PowerMeter mailbox = meter_of(
      kPeriod_s, [device](const MeterQuery&) { return pmic_board_w(answer_of_mailbox(device)); });
  if (mailbox.read()) {
    return mailbox;
  }
  if (!is_there(program)) {
    throw InputError(mailbox.problem());
  }
  return meter_of(1, [program, command_s](const MeterQuery& query) {
    return pmic_board_w(
        command_output(fmt::format("{} {}", program.string(), kQuestion), command_s, query.stop));
  });
}

}  // namespace tessera::engine
