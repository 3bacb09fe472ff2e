// A meter that shows what a text file says: a curve that is known, for trying things out and for
// tests.
//
//   # comments begin with #
//   joules          values count joules; without this line they are watts
//   period 0.05     seconds between looks (default: 0.1)
//   0 2.5           seconds since the meter was opened, and the value; between two lines it is
//   10 4.0          interpolated, before the first and after the last line it stays the same
//   12 fail         from here to the next line each look fails

#pragma once

#include <filesystem>

#include "engine/power/power_meter.h"

namespace tessera::engine {

// Throws InputError, with the line, where the file cannot be read or has other lines.
[[nodiscard]] PowerMeter file_meter(const std::filesystem::path& path);

}  // namespace tessera::engine
