// The power management chip of a Raspberry Pi 5 or Compute Module 5: voltage and current of twelve
// rails, as the firmware tells them. There is no counter, so it is looked at ten times a second.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// Watts of the board from what `vcgencmd pmic_read_adc` prints: 1.1451 times the sum over rails of
// volts times amperes, and 0.5879 (jfikar/RPi5-power: a fit to one board). Throws InputError where
// the text has no such rails.
[[nodiscard]] double pmic_board_w(const std::string& text);

// By the mailbox device dev/vcio below `root`, else by the program usr/bin/vcgencmd, which takes
// more time and so is asked once a second. Nothing where the board has no such chip. Throws
// InputError where the device does not answer and there is no such program.
[[nodiscard]] std::optional<PowerMeter> find_pmic_meter(const std::filesystem::path& root,
                                                        double command_s);

}  // namespace tessera::engine
