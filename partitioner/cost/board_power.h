// Power of small boards by published figures: an estimate where nobody has measured a device.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "partitioner/cost/power_profile.h"

namespace tessera::partitioner {

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

// The power of the board whose device tree names this model; null where the table does not have it.
[[nodiscard]] const BoardPower* board_power_of_model(std::string_view model);

// Watts with so many busy cores: linear from idle to all of them (PowerPi, LCN 2014).
[[nodiscard]] double power_w(const BoardPower& board, double busy_cores);

// The profile of a device that is such a board, marked as an estimate. Nothing is known of its
// link.
[[nodiscard]] PowerProfile power_profile(const BoardPower& board);

}  // namespace tessera::partitioner
