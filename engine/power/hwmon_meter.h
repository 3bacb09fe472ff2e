// Sensors of voltage and current that the kernel knows (hwmon): Texas Instruments' INA2xx and
// INA3221 on I2C, POWER-Z testers on USB. Chips are found by their names: their numbers change from
// one start of the machine to the next.

#pragma once

#include <filesystem>
#include <optional>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// All rails of all such chips together, or only the rail that feeds the board where a label says
// which that is. One rail counts as the board's. Nothing where there is no chip. `root` is the
// folder that sys lies in. Throws InputError where a chip has no rail that can be read.
[[nodiscard]] std::optional<PowerMeter> find_hwmon_meter(const std::filesystem::path& root);

}  // namespace tessera::engine
