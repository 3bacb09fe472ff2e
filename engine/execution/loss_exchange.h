// What ranks tell each other when a forward pass is over: their parts of the loss, and whether one
// of them has a reason to stop. So the loss is known to all, and an error of one rank ends a step
// on all of them while nothing else is under way.

#pragma once

#include <optional>
#include <string>

#include "engine/base/loss_sum.h"
#include "engine/comm/gathering.h"

namespace tessera::engine {

struct PassProblem {
  enum class Kind : int {
    Images,   // some of the pass cannot be read
    Reported  // by an observer of earlier steps
  };
  Kind kind = Kind::Images;
  std::string text;
};

struct PassOutcome {
  LossSum loss;                             // not yet divided by images
  int stop_signal = 0;                      // see engine/system/stop_request.h
  std::optional<PassProblem> problem = {};  // what went wrong, if anything did
};

class LossExchange {
 public:
  explicit LossExchange(const Communicator& communicator) : gathering_(communicator) {}
  // Among ranks [first, first + count).
  LossExchange(const Communicator& communicator, int first, int count)
      : gathering_(communicator, first, count) {}

  void set(const PassOutcome& mine);
  // Gathering::kRounds rounds, each started and finished.
  void start(int round) { gathering_.start(round); }
  void finish() { gathering_.finish(); }

  // The same on all ranks that take part: the sum of their losses, in rank order, and the signal
  // and the problem of the lowest rank that has one.
  [[nodiscard]] PassOutcome total() const;

 private:
  Gathering gathering_;
};

}  // namespace tessera::engine
