// Who of the ranks has been heard of lately. Times are seconds of one steady clock, that of the
// rank which keeps this.

#pragma once

#include <optional>
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

  // Returns for how long nothing had been heard of the rank; 0 where it is the first time.
  double heard(const Heartbeat& beat, double now_s);
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

// What was silent for some time and is back. Ranks behind one link come back within a moment of
// each other, and are told of together.
class Returns {
 public:
  // `least_s`: shorter silences are no news. Told of after `together_s` without another return.
  Returns(double least_s, double together_s) : least_s_(least_s), together_s_(together_s) {}

  // A rank was heard of after so many seconds.
  void heard(int rank, double silent_s, double now_s);

  struct Return {
    std::vector<int> ranks;  // rising
    double silent_s = 0;     // the longest of their silences
  };
  // What there is to tell, once.
  [[nodiscard]] std::optional<Return> news(double now_s);

 private:
  double least_s_;
  double together_s_;
  Return back_;
  double latest_s_ = 0;
};

}  // namespace tessera::engine
