// The energy counters of processor packages (RAPL), as the kernel's powercap folder has them. They
// are of the processor alone: memory, disks and the board's supply come on top.

#pragma once

#include <filesystem>
#include <optional>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// All packages together; nothing where the machine has none. `root` is the folder that sys lies in.
// Throws InputError where a counter is there and cannot be read: by default only root may.
[[nodiscard]] std::optional<PowerMeter> find_rapl_meter(const std::filesystem::path& root);

}  // namespace tessera::engine
