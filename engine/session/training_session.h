// A whole training run as a value: what is asked of it goes in, observers hear what happens, and
// the run folder holds the rest. `train` and `choose` of the command line are such sessions.
//
// A session opens the model and the data set, finds the partition (by a search or by trials of
// devices, where that is asked for), moves samples by a data map, trains, changes the partition
// while it trains, tests, and writes checkpoints and records. It prints nothing and never ends its
// process: errors are AgreedErrors and a signal is Stopped (see system/stop_request.h), thrown on
// all ranks.

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/comm/communicator.h"
#include "engine/run_log/loss_trend.h"
#include "engine/session/data_move.h"
#include "engine/session/run_activity.h"
#include "engine/session/run_environment.h"
#include "engine/session/session_observer.h"
#include "engine/session/training_request.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/training_run.h"

namespace tessera::engine {

// Steps that are about to be taken by one partition.
struct StepsAhead {
  Index done = 0;
  Index last = 0;    // of the run
  Index images = 0;  // of a step
};

// Each function may be empty; none may throw, but for those of `steps`, which end the run then.
struct TrainingSessionObserver {
  SessionObserver messages = {};

  // Rank 0's. A run takes its steps in several parts where its partition changes; between
  // steps_begin and steps_end, which comes also when an exception ends the part, `steps` is told of
  // each step and each test.
  std::function<void(const StepsAhead&)> steps_begin = {};
  TrainingObserver steps = {};
  std::function<void()> steps_end = {};

  // On every rank, of each step whose state is kept, where that is asked for.
  std::function<void(Index step, Index last)> step_done = {};

  // On every rank that takes part, between steps_begin and steps_end.
  TellActivity activity = {};

  MoveObserver moves = {};

  // On every rank, also of the checkpoint that the run goes on from, with its step: the file is on
  // the disk. On rank 0 a thread of its own may call it, between the ones before and after it.
  std::function<void(const std::string& file, Index step)> checkpoint = {};

  // How a user goes on from a checkpoint, for messages and reports, rank 0's: with the same ranks
  // in the same run folder, or in the folder to which a checkpoint was saved because its own
  // vanished.
  std::function<std::string(const std::string& checkpoint)> resume_advice = {};
  std::function<std::string(const std::filesystem::path& folder)> resume_advice_in = {};

  // Written to standard error by the handler of the first signal that asks for an end; null:
  // nothing. It must outlive the session.
  const char* stop_notice = nullptr;
};

struct TrainingResult {
  Index step = 0;  // the last one, whose weights were saved
  // Rank 0's.
  std::optional<BestSoFar> best = {};  // where there were tests
  Index tests_since_best = 0;
  std::optional<RisenLoss> risen_loss = {};  // training has diverged
};

struct SessionState;

class TrainingSession {
 public:
  // The same request on all ranks. The communicator must outlive it.
  TrainingSession(TrainingRequest request,
                  const Communicator& communicator,
                  TrainingSessionObserver observer = {},
                  RunEnvironment environment = {});
  ~TrainingSession();
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  // Trains, once. All ranks call it together.
  TrainingResult run();

  // Writes into the run's records that it failed, and how the process is about to end, for whoever
  // is about to end the process. Any thread of any rank may call it during run(); rank 0's is kept.
  void record_failure(const std::string& reason, int exit_code);
  // The same of what does not end it.
  void record_warning(const std::string& text);

 private:
  std::unique_ptr<SessionState> state_;
};

}  // namespace tessera::engine
