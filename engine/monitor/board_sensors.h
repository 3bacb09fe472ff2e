// Temperature, clock and throttling of this machine, where its kernel reports them. Virtual
// machines mostly have none of them.

#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace tessera::engine {

class BoardSensors {
 public:
  // Looks for sensors in sys and dev below `root`.
  explicit BoardSensors(const std::filesystem::path& root);

  // The processor's, where its sensor is known by name, else that of the first sensor.
  [[nodiscard]] std::optional<double> temperature_c() const;

  // What processors run at, or were asked to: the mean.
  [[nodiscard]] std::optional<double> clock_hz() const;

  // What the firmware of a Raspberry Pi says, in bits: 0 low voltage, 1 clock limited, 2 throttled,
  // 3 at the soft limit of temperature; from bit 16 the same, once since the board was started.
  [[nodiscard]] std::optional<double> throttled() const;

 private:
  std::filesystem::path temperature_;          // millidegrees; empty: none
  std::vector<std::filesystem::path> clocks_;  // kHz
  std::filesystem::path flags_;                // hexadecimal; empty: none
  std::filesystem::path mailbox_;              // of the firmware; empty: none
};

}  // namespace tessera::engine
