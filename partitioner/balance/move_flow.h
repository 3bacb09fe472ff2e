// Whether samples can be moved within given times: a maximum flow from the devices where samples
// lie to those where they end, and where it falls short the minimum cut, which says what time would
// be needed at least.

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "partitioner/balance/move_limits.h"

namespace tessera::partitioner {

// The devices at which a cut separates: those on the side where samples come from.
struct MoveCut {
  std::vector<char> holds;  // samples before moving
  std::vector<char> sends;
  std::vector<char> receives;
  std::vector<char> keeps;  // samples after moving
};

class MoveFlow {
 public:
  // `problem` must outlive it.
  explicit MoveFlow(const BalanceProblem& problem);
  ~MoveFlow();
  MoveFlow(const MoveFlow&) = delete;
  MoveFlow& operator=(const MoveFlow&) = delete;

  // Moves that keep to the times; where there are none, `cut` says why.
  [[nodiscard]] std::optional<std::vector<SampleMove>> moves(const BalanceTimes& times,
                                                             MoveCut& cut);

  // Moves of the fewest samples among all that keep to the times; there must be some.
  [[nodiscard]] std::vector<SampleMove> fewest_moves(const BalanceTimes& times);

 private:
  struct Graph;
  void set_capacities(const BalanceTimes& times);
  template <class Flow>
  [[nodiscard]] std::vector<SampleMove> moves_of(const Flow& flow) const;

  const BalanceProblem& problem_;
  MoveLimits limits_;
  std::unique_ptr<Graph> graph_;
};

// The least time of moving, from `from_s` on, at which a cut lets all samples pass if an epoch
// takes `epoch_s`; infinite where no time is enough.
[[nodiscard]] double least_move_s(const BalanceProblem& problem,
                                  const MoveCut& cut,
                                  double epoch_s,
                                  double from_s);

}  // namespace tessera::partitioner
