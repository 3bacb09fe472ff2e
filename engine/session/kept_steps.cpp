#include "engine/session/kept_steps.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "engine/comm/agreement.h"
#include "partitioner/base/quantities.h"

namespace tessera::engine {

TrainingObserver KeptSteps::observer(const partitioner::Network& network,
                                     TrainingPhase& phase,
                                     const TrainingState& begun,
                                     const TrainingLength& length) {
  if (folder_.empty() || !KeptState::is_kept(phase.plan())) {
    return {};
  }
  if (!state_) {
    state_.emplace(folder_, network, phase.plan(), phase.trainer(), phase.communicator());
    say_what_is_kept(phase.communicator());
  }
  const Index batch = phase.trainer().options().training.batch;
  const Index before = begun.images_seen - begun.step * batch;
  return {.step = [this, before, batch, &length](Index step, const StepResult& result) {
    state_->keep({step, result.loss, result.learning_rate}, before + step * batch);
    if (result.stop_signal != 0 || length.ends_epoch(step)) {
      state_->settle();  // the next step is not soon
    }
  }};
}

void KeptSteps::settle() {
  if (state_) {
    state_->settle();
  }
}

void KeptSteps::discard() {
  if (state_) {
    state_->discard();
  }
}

void KeptSteps::say_what_is_kept(const Communicator& trains) const {
  const std::vector<Index> kept = trains.of_ranks(state_->file_bytes());
  const std::vector<Index> sent = trains.of_ranks(state_->sent_bytes());
  on_root(trains, [&] {
    observer_.say(fmt::format(
        "the state of each step is kept in memory: {} on a rank at most, {} sent in a step\n",
        readable_bytes(*std::max_element(kept.begin(), kept.end())),
        readable_bytes(*std::max_element(sent.begin(), sent.end()))));
  });
}

}  // namespace tessera::engine
