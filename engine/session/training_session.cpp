#include "engine/session/training_session.h"

#include <utility>

#include "engine/session/session_run.h"
#include "engine/session/training_start.h"

namespace tessera::engine {

TrainingSession::TrainingSession(TrainingRequest request,
                                 const Communicator& communicator,
                                 TrainingSessionObserver observer,
                                 RunEnvironment environment)
    : state_(std::make_unique<SessionState>(
          std::move(request), std::move(environment), communicator, std::move(observer))) {
  if (state_->request.devices) {
    state_->request.partition.automatic = true;  // of each set of devices
  }
}

TrainingSession::~TrainingSession() = default;

TrainingResult TrainingSession::run() {
  const SessionObserver& messages = state_->observer.messages;
  state_->request = request_from_start(
      std::move(state_->request), state_->environment, state_->communicator, messages);
  std::optional<PartitionChooser> chooser;
  if (state_->request.devices) {
    chooser.emplace(state_->request, messages);
  }
  PartitionChooser* const chosen = chooser ? &*chooser : nullptr;
  TrainingSetup setup(state_->request, state_->environment, state_->communicator, messages, chosen);
  return SessionRun(*state_, setup, chosen).run();
}

void TrainingSession::record_failure(const std::string& reason, int exit_code) {
  state_->run_log.end("failed", reason, exit_code);
}

void TrainingSession::record_warning(const std::string& text) {
  state_->run_log.warn(text);
}

}  // namespace tessera::engine
