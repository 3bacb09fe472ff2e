#include "engine/monitor/device_log.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace tessera::engine {

namespace {

constexpr int kMostRanks = 1 << 16;  // of a line that somebody has changed

std::optional<double> number_of(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? std::optional(found->get<double>())
                                                   : std::nullopt;
}

bool is_of_cluster(const nlohmann::json& line) {
  const auto source = line.find("power_source");
  if (source == line.end() || !source->is_string()) {
    return false;
  }
  const std::string_view text = source->get_ref<const std::string&>();
  const std::string_view suffix = kClusterSuffix;
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

}  // namespace

void DeviceLog::Kept::take_in(const nlohmann::json& line) {
  const double t_s = number_of(line, "t_s").value_or(0);
  const double power_w = number_of(line, "power_w").value_or(0);
  until_s = std::max(until_s, t_s);
  const double rank = number_of(line, "rank").value_or(-1);
  if (const auto energy = number_of(line, "energy_j"); energy && is_of_cluster(line)) {
    cluster = {t_s, *energy, power_w};
  } else if (energy && rank >= 0 && rank < kMostRanks) {
    boards[static_cast<int>(rank)] = {t_s, *energy, power_w};
  }
  if (const auto energy = number_of(line, "cluster_energy_j")) {
    cluster = {t_s, *energy, number_of(line, "cluster_power_w").value_or(0)};
  }
}

DeviceLog::DeviceLog(const std::filesystem::path& path, Index resumed_step, bool after_fault)
    : lines_(
          path,
          resumed_step,
          [this](const nlohmann::json& line) { kept_.take_in(line); },
          after_fault ? [](const nlohmann::json& /*line*/, Index /*step*/) { return true; }
                      : std::function<bool(const nlohmann::json&, Index)>()) {}

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
