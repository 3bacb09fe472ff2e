// Messages under way between devices, as fluids that share the rates of network interfaces. Those
// of one pair follow each other, but bulk messages stand back while others of their pair are under
// way: they travel in small chunks, and others wait only for those that have set out.

#pragma once

#include <deque>
#include <queue>
#include <vector>

#include "partitioner/cost/cluster_profile.h"

namespace tessera::partitioner {

class Wire {
 public:
  // `bulk_under_way`: bytes of a bulk message that have set out before others of its pair come.
  explicit Wire(const ClusterProfile& cluster, double bulk_under_way = 0);

  enum class Kind { Urgent, Bulk };

  // A message that is ready to go at `time`, not before the time of events that were taken already.
  // Returns its number, counted from 0.
  int send(int from, int to, double bytes, double time, Kind kind = Kind::Urgent);

  // The next message whose last byte leaves, and when; message -1 when all have left.
  struct Departure {
    int message = -1;
    double time = 0;
  };
  Departure next();

 private:
  struct Flow {
    int from = 0;
    int to = 0;
    double left = 0;  // bytes
    double rate = 0;
    Kind kind = Kind::Urgent;
    double link_rate = 0;
  };
  struct Start {
    double time = 0;
    int message = 0;
    friend bool operator>(const Start& a, const Start& b) {
      return a.time != b.time ? a.time > b.time : a.message > b.message;
    }
  };
  void begin_due();
  void line_up(int message);
  void share_rates();
  [[nodiscard]] Departure leave(int message);
  [[nodiscard]] std::size_t pair(const Flow& flow) const;
  Flow& flow(int message) { return flows_[static_cast<std::size_t>(message)]; }

  const ClusterProfile* cluster_;
  double bulk_under_way_;
  std::vector<Flow> flows_;  // by message
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::vector<std::deque<int>> queues_;  // by pair: messages that have started, the first one moves
  std::vector<int> moving_;
  std::vector<int> gone_;  // at this time, all together; those before `finished_` have left
  std::size_t finished_ = 0;
  double time_ = 0;
  bool shared_ = true;  // rates are those of `moving_`
  // An interface while rates are shared out: what is left, among how many flows, and the share of
  // each.
  struct Interface {
    double rate = 0;
    int flows = 0;
    double share = 0;
  };
  std::vector<Interface> out_;
  std::vector<Interface> in_;
  std::vector<int> open_;       // messages that have no rate yet
  std::vector<double> shares_;  // of these
};

}  // namespace tessera::partitioner
