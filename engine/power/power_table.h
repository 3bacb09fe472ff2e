// Power of small boards without a meter: an estimate from published figures.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/power/power_meter.h"

namespace tessera::engine {

struct BoardPower {
  const char* key;    // how a user names it: "pi3b"
  const char* model;  // how the device tree begins
  int cores = 1;
  double idle_w = 0;
  double full_w = 0;  // all cores busy
};

// Figures differ by this much between sources and from board to board.
inline constexpr double kTableError = 0.25;

// By its key. Throws InputError that lists the keys.
[[nodiscard]] const BoardPower& board_power(const std::string& key);

// Of the machine that this runs on, as /proc/device-tree/model below `root` names it; null where
// the table does not have it.
[[nodiscard]] const BoardPower* this_board_power(const std::filesystem::path& root);

// Linear in the busy cores, from none to all.
[[nodiscard]] PowerMeter table_meter(const BoardPower& board);

}  // namespace tessera::engine
