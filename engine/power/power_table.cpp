#include "engine/power/power_table.h"

#include <fstream>

namespace tessera::engine {

const BoardPower* this_board_power(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/device-tree/model");
  std::string model;
  std::getline(file, model, '\0');
  return partitioner::board_power_of_model(model);
}

PowerMeter table_meter(const BoardPower& board) {
  MeterDescription description;
  description.source = std::string("table:") + board.model;
  description.relative_error = partitioner::kTableError;
  description.estimated = true;
  return PowerMeter(description, [board](const MeterQuery& query) {
    return partitioner::power_w(board, query.busy_cores);
  });
}

}  // namespace tessera::engine
