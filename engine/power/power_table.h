// A meter for small boards that have none: an estimate from published figures.

#pragma once

#include <filesystem>

#include "engine/power/power_meter.h"
#include "partitioner/cost/board_power.h"

namespace tessera::engine {

using partitioner::board_power;
using partitioner::BoardPower;

// The entry of the machine that this runs on, as /proc/device-tree/model below `root` names it;
// null where the table does not have it.
[[nodiscard]] const BoardPower* this_board_power(const std::filesystem::path& root);

// Linear in the busy cores, from none to all.
[[nodiscard]] PowerMeter table_meter(const BoardPower& board);

}  // namespace tessera::engine
