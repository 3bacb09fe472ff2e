#include "engine/monitor/device_log.h"

#include <algorithm>
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
  until_s = std::max(until_s, number_of(line, "t_s").value_or(0));
  const double rank = number_of(line, "rank").value_or(-1);
  if (const auto energy = number_of(line, "energy_j"); energy && is_of_cluster(line)) {
    cluster_j = energy;
  } else if (energy && rank >= 0 && rank < kMostRanks) {
    boards_j[static_cast<int>(rank)] = *energy;
  }
  if (const auto energy = number_of(line, "cluster_energy_j")) {
    cluster_j = energy;
  }
}

DeviceLog::DeviceLog(const std::filesystem::path& path, Index resumed_step)
    : lines_(path, resumed_step, [this](const nlohmann::json& line) { kept_.take_in(line); }) {}

RunEnergy DeviceLog::kept_energy() const {
  RunEnergy energy;
  for (const auto& [rank, board_j] : kept_.boards_j) {
    energy.of_rank_j.resize(static_cast<std::size_t>(rank) + 1);
    energy.of_rank_j.back() = board_j;
    energy.total_j = energy.total_j.value_or(0) + board_j;
  }
  if (kept_.cluster_j) {
    energy.total_j = kept_.cluster_j;
  }
  return energy;
}

}  // namespace tessera::engine
