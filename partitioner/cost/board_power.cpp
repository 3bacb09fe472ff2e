#include "partitioner/cost/board_power.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"

namespace tessera::partitioner {

namespace {

// Watts at the supply of the board; the sources are in engine/power/README.md. Where two differ,
// their mean. The first whose model a board's name begins with counts.
constexpr std::array<BoardPower, 8> kBoards{{
    {"pi3b+", "Raspberry Pi 3 Model B Plus", 4, 1.9, 5.1},
    {"pi3b", "Raspberry Pi 3 Model B", 4, 1.4, 3.7},
    {"cm0", "Raspberry Pi Compute Module 0", 4, 1.2, 3.7},
    {"pi4b", "Raspberry Pi 4 Model B", 4, 2.15, 5.7},
    {"cm4", "Raspberry Pi Compute Module 4", 4, 2.5, 4.6},
    {"pi400", "Raspberry Pi 400", 4, 2.7, 5.2},
    {"pi5", "Raspberry Pi 5 Model B", 4, 2.8, 9.7},
    {"cm5", "Raspberry Pi Compute Module 5", 4, 2.4, 8.5},
}};

}  // namespace

const BoardPower& board_power(const std::string& key) {
  std::vector<std::string_view> keys;
  for (const BoardPower& board : kBoards) {
    if (board.key == key) {
      return board;
    }
    keys.emplace_back(board.key);
  }
  throw InputError(fmt::format("no power is known of the board \"{}\"{} (expected {})",
                               printable_start(key),
                               suggestion(key, keys),
                               fmt::join(keys, ", ")));
}

const BoardPower* board_power_of_model(std::string_view model) {
  const auto* const found =
      std::find_if(kBoards.begin(), kBoards.end(), [&](const BoardPower& board) {
        return model.starts_with(board.model);
      });
  return found == kBoards.end() ? nullptr : found;
}

double power_w(const BoardPower& board, double busy_cores) {
  const double part = std::clamp(busy_cores / board.cores, 0.0, 1.0);
  return board.idle_w + part * (board.full_w - board.idle_w);
}

PowerProfile power_profile(const BoardPower& board) {
  PowerProfile power;
  power.source = std::string("table:") + board.model;
  power.estimated = true;
  power.relative_error = kTableError;
  power.idle_w = board.idle_w;
  for (int cores = 1; cores <= board.cores; ++cores) {
    power.busy_w.push_back(power_w(board, cores));
  }
  return power;
}

}  // namespace tessera::partitioner
