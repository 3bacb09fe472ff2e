// What actions take on this rank: summed by layer and pass for reports, and, where it is recorded,
// each by itself.

#pragma once

#include <vector>

#include "engine/comm/communicator.h"
#include "engine/execution/action_places.h"
#include "partitioner/cost/compute_model.h"

namespace tessera::engine {

// An action that was performed; seconds as now_s() counts them.
struct PerformedAction {
  partitioner::ActionIndex action = {};
  Index pass = 0;  // of the step
  double begin_s = 0;
  double end_s = 0;
};

class ActionClock {
 public:
  ActionClock(const Communicator& communicator, int layers)
      : communicator_(&communicator), times_(static_cast<std::size_t>(layers)) {}

  // An action is performed for as long as this lives.
  class Span {
   public:
    Span(ActionClock& clock, const ActionPlace& place, partitioner::ActionIndex action, Index pass);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    ActionClock& clock_;
    const ActionPlace& place_;
    PerformedAction performed_;
    double exchanged_s_;  // before it
  };

  // By layer, what computing took in all passes since the last call: exchanges are not counted.
  [[nodiscard]] std::vector<partitioner::PassSeconds> take();

  // From here on each action is noted, or none. Forgets those noted so far.
  void record(bool on);
  [[nodiscard]] const std::vector<PerformedAction>& performed() const { return performed_; }

 private:
  const Communicator* communicator_;
  std::vector<partitioner::PassSeconds> times_;
  bool records_ = false;
  std::vector<PerformedAction> performed_;
};

}  // namespace tessera::engine
