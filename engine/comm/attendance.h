// Who of the ranks has been heard of lately. Times are seconds of one steady clock, that of the
// rank which keeps this.

#pragma once

#include <vector>

namespace tessera::engine {

// What a rank says of itself, again and again.
struct Heartbeat {
  int rank = 0;
  double stuck_s = 0;  // it has waited so long for messages of others, and none came
};

class Attendance {
 public:
  // Watches that many ranks, of which this one is `mine`; all count as heard of at `now_s`.
  Attendance(int ranks, int mine, double now_s);

  void heard(const Heartbeat& beat, double now_s);
  // This rank itself stood still for so long, and could hear nothing: that is nobody's silence.
  void forgive(double seconds);

  // Ranks that were heard of before, and not for `limit_s` or longer. A rank of which nothing was
  // ever heard is not counted as silent: a firewall may keep heartbeats from it, but not messages.
  [[nodiscard]] std::vector<int> silent(double limit_s, double now_s) const;

  // For how long all ranks have been waiting for each other, this one for `mine_s`: 0 where any
  // that was heard of works. Ranks of which nothing was ever heard are not known to work.
  [[nodiscard]] double all_stuck_s(double mine_s) const;

 private:
  struct Rank {
    double heard_s = 0;
    double stuck_s = 0;
    bool ever_heard = false;
  };
  std::vector<Rank> ranks_;
  int mine_;
};

}  // namespace tessera::engine
