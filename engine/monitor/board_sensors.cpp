#include "engine/monitor/board_sensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

#include "engine/monitor/sensor_file.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

// In the order of their names.
std::vector<fs::path> entries(const fs::path& folder, std::string_view begin) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().compare(0, begin.size(), begin) == 0) {
      found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// 0: a processor's sensor by its name; more: a worse guess.
int rank_of(const std::string& name) {
  constexpr std::array<std::string_view, 7> kProcessors{
      "cpu-thermal", "cpu_thermal", "soc-thermal", "x86_pkg_temp", "coretemp", "k10temp", "cpu"};
  const bool is_processor =
      std::any_of(kProcessors.begin(), kProcessors.end(), [&](std::string_view known) {
        return name.compare(0, known.size(), known) == 0;
      });
  return is_processor ? 0 : 1;
}

fs::path temperature_file(const fs::path& root) {
  fs::path best;
  int best_rank = 2;
  const auto offer = [&](const fs::path& file, const std::string& name) {
    if (rank_of(name) < best_rank && sensor_number(file)) {
      best = file;
      best_rank = rank_of(name);
    }
  };
  for (const fs::path& zone : entries(root / "sys/class/thermal", "thermal_zone")) {
    offer(zone / "temp", sensor_text(zone / "type"));
  }
  for (const fs::path& chip : entries(root / "sys/class/hwmon", "hwmon")) {
    if (const std::string name = sensor_text(chip / "name"); rank_of(name) == 0) {
      offer(chip / "temp1_input", name);  // that of a disk says nothing here
    }
  }
  return best;
}

std::vector<fs::path> clock_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const fs::path& processor : entries(root / "sys/devices/system/cpu", "cpu")) {
    const fs::path file = processor / "cpufreq/scaling_cur_freq";
    if (sensor_number(file)) {
      files.push_back(file);
    }
  }
  return files;
}

// Below the firmware's device, whose place depends on the board.
fs::path flags_file(const fs::path& root) {
  for (const fs::path& bus : entries(root / "sys/devices/platform", "soc")) {
    for (const fs::path& firmware : entries(bus, "soc")) {
      const fs::path file = firmware / "get_throttled";
      if (!sensor_text(file).empty()) {
        return file;
      }
    }
  }
  return {};
}

// A request to the firmware by its mailbox: what `vcgencmd get_throttled` asks.
std::optional<std::uint32_t> ask_flags(const fs::path& mailbox) {
  constexpr std::uint32_t kGetThrottled = 0x00030046;
  constexpr std::uint32_t kAnswered = 0x80000000;
  const int device = ::open(mailbox.c_str(), O_RDONLY | O_CLOEXEC);
  if (device < 0) {
    return std::nullopt;
  }
  // Bytes of all of it, request, property, bytes of its value, request, value, end.
  std::array<std::uint32_t, 7> message{sizeof message, 0, kGetThrottled, 4, 0, 0, 0};
  const bool answered =
      ::ioctl(device, _IOWR(100, 0, char*), message.data()) == 0 && message[1] == kAnswered;
  ::close(device);
  return answered ? std::optional(message[5]) : std::nullopt;
}

}  // namespace

BoardSensors::BoardSensors(const fs::path& root)
    : temperature_(temperature_file(root)),
      clocks_(clock_files(root)),
      flags_(flags_file(root)),
      mailbox_(flags_.empty() && ask_flags(root / "dev/vcio") ? root / "dev/vcio" : fs::path()) {}

std::optional<double> BoardSensors::believed(double value, Plausible& range) {
  if (value >= range.least && value <= range.most) {
    return value;
  }
  if (!std::exchange(range.told, true)) {
    problems_.push_back(fmt::format(
        "{} shows {:g} {}, which cannot be: it is left out", range.what, value, range.unit));
  }
  return std::nullopt;
}

std::vector<std::string> BoardSensors::new_problems() {
  return std::exchange(problems_, {});
}

std::optional<double> BoardSensors::temperature_c() {
  const auto millidegrees = temperature_.empty() ? std::nullopt : sensor_number(temperature_);
  return millidegrees ? believed(1e-3 * *millidegrees, temperatures_) : std::nullopt;
}

std::optional<double> BoardSensors::clock_hz() {
  double sum = 0;
  int count = 0;
  for (const fs::path& file : clocks_) {
    const auto khz = sensor_number(file);  // a processor may be switched off
    if (const auto hz = khz ? believed(1e3 * *khz, frequencies_) : std::nullopt) {
      sum += *hz;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::optional<double> BoardSensors::throttled() const {
  if (!mailbox_.empty()) {
    const auto flags = ask_flags(mailbox_);
    return flags ? std::optional<double>(*flags) : std::nullopt;
  }
  const std::string text = flags_.empty() ? "" : sensor_text(flags_);
  char* end = nullptr;
  const unsigned long flags = std::strtoul(text.c_str(), &end, 16);
  return end == text.c_str() ? std::nullopt : std::optional(static_cast<double>(flags));
}

}  // namespace tessera::engine
