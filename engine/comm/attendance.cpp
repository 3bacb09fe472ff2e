#include "engine/comm/attendance.h"

#include <algorithm>

namespace tessera::engine {

Attendance::Attendance(int ranks, int mine, double now_s)
    : ranks_(static_cast<std::size_t>(ranks), Rank{now_s, 0, false}), mine_(mine) {}

void Attendance::heard(const Heartbeat& beat, double now_s) {
  ranks_[static_cast<std::size_t>(beat.rank)] = {now_s, beat.stuck_s, true};
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

}  // namespace tessera::engine
