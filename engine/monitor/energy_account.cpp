#include "engine/monitor/energy_account.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

namespace {

void raise(std::optional<double>& said, const std::optional<double>& now) {
  if (now) {
    said = std::max(said.value_or(0), *now);
  }
}

}  // namespace

RunEnergy EnergyInterval::next(const RunEnergy& now) {
  RunEnergy between = now;
  if (between.total_j) {
    *between.total_j -= begin_.total_j.value_or(0);
  }
  begin_.of_rank_j.resize(now.of_rank_j.size());
  for (std::size_t rank = 0; rank < now.of_rank_j.size(); ++rank) {
    if (between.of_rank_j[rank]) {
      *between.of_rank_j[rank] -= begin_.of_rank_j[rank].value_or(0);
    }
  }
  begin_ = now;
  return between;
}

std::optional<double> EnergyAccount::Meter::at(double now_s) const {
  constexpr double kLongest_s = 3;
  if (!std::isfinite(energy_j)) {
    return std::nullopt;
  }
  const double since_s = std::clamp(now_s - t_s, 0.0, kLongest_s);
  return energy_j + (std::isfinite(power_w) ? power_w * since_s : 0);
}

EnergyAccount::EnergyAccount(int ranks, const RunEnergy& before)
    : boards_(static_cast<std::size_t>(ranks)), before_(before), said_(before) {
  before_.of_rank_j.resize(boards_.size());
  said_.of_rank_j.resize(boards_.size());
}

void EnergyAccount::add(int rank, const DeviceSample& sample) {
  boards_[static_cast<std::size_t>(rank)] = {
      sample.t_s, sample.energy_j, sample.power_w, sample.gap_s};
  if (rank == 0) {
    cluster_ = {sample.t_s, sample.cluster_energy_j, sample.cluster_power_w, 0};
  }
}

DeviceSample EnergyAccount::since_start(int rank, DeviceSample sample) const {
  sample.energy_j += before_.of_rank_j[static_cast<std::size_t>(rank)].value_or(0);
  sample.cluster_energy_j += before_.total_j.value_or(0);
  return sample;
}

RunEnergy EnergyAccount::at(double t_s) {
  std::optional<double> sum;
  for (std::size_t rank = 0; rank < boards_.size(); ++rank) {
    if (const auto now = boards_[rank].at(t_s)) {
      sum = sum.value_or(0) + *now;
      raise(said_.of_rank_j[rank], before_.of_rank_j[rank].value_or(0) + *now);
    }
  }
  const auto of_cluster = cluster_.at(t_s);  // what it counts includes the boards
  if (const auto now = of_cluster ? of_cluster : sum) {
    raise(said_.total_j, before_.total_j.value_or(0) + *now);
  }
  return said_;
}

double EnergyAccount::longest_gap_s() const {
  double longest = 0;
  for (const Meter& board : boards_) {
    longest = std::max(longest, board.gap_s);
  }
  return longest;
}

}  // namespace tessera::engine
