#include "engine/comm/attendance.h"

#include <algorithm>
#include <utility>

namespace tessera::engine {

Attendance::Attendance(int ranks, int mine, double now_s)
    : ranks_(static_cast<std::size_t>(ranks), Rank{now_s, 0, false}), mine_(mine) {}

double Attendance::heard(const Heartbeat& beat, double now_s) {
  const Rank before =
      std::exchange(ranks_[static_cast<std::size_t>(beat.rank)], Rank{now_s, beat.stuck_s, true});
  return before.ever_heard ? now_s - before.heard_s : 0;
}

void Attendance::forgive(double seconds) {
  for (Rank& rank : ranks_) {
    rank.heard_s += seconds;
  }
}

std::vector<int> Attendance::silent(double limit_s, double now_s) const {
  std::vector<int> found;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& its = ranks_[static_cast<std::size_t>(rank)];
    if (rank != mine_ && its.ever_heard && now_s - its.heard_s >= limit_s) {
      found.push_back(rank);
    }
  }
  return found;
}

double Attendance::all_stuck_s(double mine_s) const {
  double least = mine_s;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& its = ranks_[static_cast<std::size_t>(rank)];
    if (rank != mine_ && its.ever_heard) {
      least = std::min(least, its.stuck_s);
    }
  }
  return least;
}

void Returns::heard(int rank, double silent_s, double now_s) {
  if (silent_s < least_s_) {
    return;
  }
  const auto place = std::lower_bound(back_.ranks.begin(), back_.ranks.end(), rank);
  if (place == back_.ranks.end() || *place != rank) {
    back_.ranks.insert(place, rank);
  }
  back_.silent_s = std::max(back_.silent_s, silent_s);
  latest_s_ = now_s;
}

std::optional<Returns::Return> Returns::news(double now_s) {
  if (back_.ranks.empty() || now_s - latest_s_ < together_s_) {
    return std::nullopt;
  }
  return std::exchange(back_, Return{});
}

}  // namespace tessera::engine
