#include "engine/monitor/device_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera::engine {

void DeviceLog::Kept::take_in(const DeviceLine& line) {
  const auto meter = [&](double energy_j, double power_w) {
    return Meter{line.t_s, energy_j, known(power_w) ? power_w : 0};
  };
  until_s = std::max(until_s, line.t_s);
  if (known(line.energy_j) && !line.has_cluster_alone()) {
    boards[static_cast<int>(line.rank)] = meter(line.energy_j, line.power_w);
  }
  if (const double energy_j = line.energy_of_cluster_j(); known(energy_j)) {
    cluster = meter(energy_j, line.has_cluster_alone() ? line.power_w : line.cluster_power_w);
  }
}

DeviceLog::DeviceLog(const std::filesystem::path& path, Index resumed_step, bool after_fault)
    : lines_(
          path,
          resumed_step,
          [this](const nlohmann::ordered_json& json) {
            if (const auto line = device_line(json)) {
              kept_.take_in(*line);
            }
          },
          after_fault ? [](const nlohmann::ordered_json& /*line*/, Index /*step*/) { return true; }
                      : JsonLines::Stays()) {}

RunEnergy DeviceLog::energy_at(double t_s, int ranks) const {
  constexpr double kLate_s = 3;  // one whose last line is older was gone before
  const auto at = [&](const Meter& meter) {
    const bool was_there = kept_.until_s - meter.t_s <= kLate_s;
    return meter.energy_j +
           (was_there ? meter.power_w * std::clamp(t_s - meter.t_s, 0.0, kLongestAssumed_s) : 0);
  };
  RunEnergy energy;
  for (const auto& [rank, board] : kept_.boards) {
    energy.of_rank_j.resize(static_cast<std::size_t>(rank) + 1);
    energy.of_rank_j.back() = rank < ranks ? at(board) : board.energy_j;
    energy.total_j = energy.total_j.value_or(0) + *energy.of_rank_j.back();
  }
  if (kept_.cluster) {
    energy.total_j = ranks > 0 ? at(*kept_.cluster) : kept_.cluster->energy_j;
  }
  return energy;
}

}  // namespace tessera::engine
