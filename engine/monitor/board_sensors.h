// Temperature, clock and throttling of this machine, where its kernel reports them. Virtual
// machines mostly have none of them.

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera::engine {

class BoardSensors {
 public:
  // Looks for sensors in sys and dev below `root`.
  explicit BoardSensors(const std::filesystem::path& root);

  // Of the processor, where its sensor is known by name, else of the first one. Nothing where the
  // sensor shows what no board survives.
  [[nodiscard]] std::optional<double> temperature_c();

  // What processors run at, or were asked to: the mean of those that show a possible clock.
  [[nodiscard]] std::optional<double> clock_hz();

  // What sensors have shown that cannot be, a sentence each; each kind once.
  [[nodiscard]] std::vector<std::string> new_problems();

  // What the firmware of a Raspberry Pi says, in bits: 0 low voltage, 1 clock limited, 2 throttled,
  // 3 at the soft limit of temperature; from bit 16 the same, once since the board was started.
  [[nodiscard]] std::optional<double> throttled() const;

 private:
  // The value where it lies in between; else nothing, and a problem the first time.
  struct Plausible {
    const char* what;
    const char* unit;
    double least;
    double most;
    bool told = false;
  };
  [[nodiscard]] std::optional<double> believed(double value, Plausible& range);

  std::filesystem::path temperature_;          // millidegrees; empty: none
  std::vector<std::filesystem::path> clocks_;  // kHz
  std::filesystem::path flags_;                // hexadecimal; empty: none
  std::filesystem::path mailbox_;              // of the firmware; empty: none
  Plausible temperatures_{"a thermal sensor", "°C", -60, 200};
  Plausible frequencies_{"a clock", "Hz", 1e6, 2e10};
  std::vector<std::string> problems_;
};

}  // namespace tessera::engine
