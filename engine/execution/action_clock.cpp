#include "engine/execution/action_clock.h"

#include <utility>

#include "engine/system/clock.h"

namespace tessera::engine {

ActionClock::Span::Span(ActionClock& clock,
                        const ActionPlace& place,
                        partitioner::ActionIndex action,
                        Index pass)
    : clock_(clock),
      place_(place),
      performed_{action, pass, now_s(), 0},
      exchanged_s_(clock.communicator_->exchange_times().total_s()) {}

ActionClock::Span::~Span() {
  performed_.end_s = now_s();
  if (place_.layer >= 0 && place_.pass != nullptr) {
    const double exchanged = clock_.communicator_->exchange_times().total_s() - exchanged_s_;
    clock_.times_[static_cast<std::size_t>(place_.layer)].*place_.pass +=
        performed_.end_s - performed_.begin_s - exchanged;
  }
  if (clock_.records_) {
    clock_.performed_.push_back(performed_);
  }
}

std::vector<partitioner::PassSeconds> ActionClock::take() {
  return std::exchange(times_, std::vector<partitioner::PassSeconds>(times_.size()));
}

void ActionClock::record(bool on) {
  records_ = on;
  performed_.clear();
}

}  // namespace tessera::engine
