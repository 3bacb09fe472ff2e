#include "engine/power/power_table.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <vector>

#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/spelling.h"

namespace tessera::engine {

namespace {

// Watts at the supply of the board; the sources are in README.md. Where two differ, their mean. The
// first whose model the board's name begins with counts.
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
  throw partitioner::InputError(fmt::format("no power is known of the board \"{}\"{} (expected {})",
                                            partitioner::printable_start(key),
                                            partitioner::suggestion(key, keys),
                                            fmt::join(keys, ", ")));
}

const BoardPower* this_board_power(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/device-tree/model");
  std::string model;
  std::getline(file, model, '\0');
  const auto found = std::find_if(kBoards.begin(), kBoards.end(), [&](const BoardPower& board) {
    return model.rfind(board.model, 0) == 0;
  });
  return found == kBoards.end() ? nullptr : &*found;
}

PowerMeter table_meter(const BoardPower& board) {
  MeterDescription description;
  description.source = std::string("table:") + board.model;
  description.relative_error = kTableError;
  description.estimated = true;
  return PowerMeter(description, [board](const MeterQuery& query) {
    const double part = std::clamp(query.busy_cores / board.cores, 0.0, 1.0);
    return board.idle_w + part * (board.full_w - board.idle_w);
  });
}

}  // namespace tessera::engine
