#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "engine/cli/closing_lines.h"
#include "engine/cli/commands.h"
#include "engine/cli/messages.h"
#include "engine/cli/move_report.h"
#include "engine/cli/process_end.h"
#include "engine/cli/stall_report.h"
#include "engine/cli/started_command.h"
#include "engine/cli/version.h"
#include "engine/run_files/names.h"
#include "engine/run_log/progress.h"
#include "engine/session/training_session.h"
#include "engine/supervisor/agent_line.h"
#include "engine/system/exit_code.h"
#include "engine/system/say.h"
#include "engine/system/stop_request.h"
#include "engine/system/test_point.h"
#include "engine/terminal/watched.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

namespace {

constexpr const char* kStopNotice =
    "tessera: stopping after this step; a second signal exits at once, without saving\n";

ProgressStyle style_named(const std::string& name) {
  if (name == "none") {
    return ProgressStyle::None;
  }
  const bool bar = name == "bar" || (name == "auto" && watched_columns().has_value());
  return bar ? ProgressStyle::Bar : ProgressStyle::Line;
}

// Prints what a training session tells.
class TrainingPrinter {
 public:
  TrainingPrinter(const std::string& progress, std::string run, LastCheckpoint& saved)
      : style_(style_named(progress)), moves_(style_), run_(std::move(run)), saved_(saved) {}

  // This must outlive it.
  [[nodiscard]] TrainingSessionObserver observer() {
    return {.messages = printed_messages(),
            .steps_begin = [this](const StepsAhead& ahead) { begin(ahead); },
            .steps = {.step =
                          [this](Index step, const StepResult& result) {
                            progress_->step(step, result, images_);
                          },
                      .evaluation =
                          [this](Index step, double epoch, const EvaluationResult& result) {
                            progress_->evaluation(step, epoch, result);
                          }},
            .steps_end = [this] { progress_.reset(); },
            .moves = {.progress = [this](const MoveProgress& progress) { moves_.show(progress); },
                      .note = [this](const std::string& line) { moves_.say_more(line); }},
            .checkpoint = [this](const std::string& file, Index step) { saved_.set(file, step); },
            .resume_advice =
                [this](const std::string& checkpoint) {
                  return state_folder_of_agent().empty() ? advice_to_resume(checkpoint)
                                                         : command_to_continue(run_);
                },
            .resume_advice_in =
                [this](const std::filesystem::path& folder) {
                  return fmt::format("{} --run {}",
                                     advice_to_resume((folder / run_file::kCheckpoint).string()),
                                     shell_word(printable(folder.string())));
                },
            .stop_notice = kStopNotice};
  }

 private:
  void begin(const StepsAhead& ahead) {
    constexpr int kUnwatchedColumns = 80;
    images_ = ahead.images;
    progress_.emplace(
        style_, ahead.done, ahead.last, watched_columns().value_or(kUnwatchedColumns));
  }

  ProgressStyle style_;
  MoveReport moves_;
  std::string run_;  // folder
  LastCheckpoint& saved_;
  Index images_ = 0;  // of a step
  std::optional<Progress> progress_;
};

of_rank::Phase phase_of(const RunActivity& activity) {
  const RankPhase phase = activity.kind == RunActivity::Kind::Test     ? RankPhase::Test
                          : activity.kind == RunActivity::Kind::Saving ? RankPhase::Saving
                                                                       : RankPhase::Steps;
  return {phase, activity.steps, activity.bytes};
}

RunEnvironment environment_of_rank() {
  const std::string state_folder = state_folder_of_agent();
  return {.state_folder = state_folder,
          .started_again = !state_folder.empty() && is_started_again(),
          .faults_file = faults_file(),
          .program_version = program_version(),
          .command = started_line()};
}

// Of two devices that do not reach each other, while both reach the supervisor, it hears by this.
Index stall_timeout_s(const TrainCommand& command) {
  constexpr Index kUnderSupervisor_s = 10;
  return command.stall_timeout_s == 0 && !request_file().empty() ? kUnderSupervisor_s
                                                                 : command.stall_timeout_s;
}

}  // namespace

TrainingRequest started_request(const TrainCommand& command) {
  const std::string file = request_file();
  return file.empty() ? command.request : read_training_request(file);
}

void run_train(const TrainCommand& command, const Communicator& communicator) {
  const TrainingRequest request = started_request(command);
  const AgentLine agent([pulse = communicator.pulse()] {
    return pulse == nullptr ? WaitsOfRank() : WaitsOfRank{pulse->waiting, pulse->waits_ended};
  });
  agent.tell(of_rank::Phase{});
  test_point("rank_begins");
  LastCheckpoint saved(!request.data_map.empty());
  TrainingPrinter printer(command.progress, request.run, saved);
  TrainingSessionObserver observer = printer.observer();
  observer.step_done = [&agent](Index step, Index last) { agent.tell(of_rank::Step{step, last}); };
  observer.activity = [&agent](const RunActivity& activity) { agent.tell(phase_of(activity)); };
  observer.steps_begin = [&agent, begin = observer.steps_begin](const StepsAhead& ahead) {
    agent.tell(of_rank::Phase{RankPhase::Steps});
    begin(ahead);
  };
  observer.steps_end = [&agent, end = observer.steps_end] {
    agent.tell(of_rank::Phase{});  // of other steps, or the end
    end();
  };
  TrainingSession session(request, communicator, observer, environment_of_rank());
  saved.on_stall(
      [&session](const std::string& what) { session.record_failure(what, kOthersMissing); });
  saved.on_return([&session](const std::string& what) { session.record_warning(what); });
  saved.on_silence([&agent](const std::vector<int>& ranks) { agent.tell(of_rank::Silent{ranks}); });
  const Watchdog watchdog = watch(communicator, stall_timeout_s(command), &saved);
  TrainingResult result;
  try {
    result = session.run();
  } catch (const Stopped& stopped) {
    if (stopped.signal() != kPauseSignal) {
      agent.tell(of_rank::Saved{});
    }
    throw;
  }
  agent.tell(of_rank::Saved{});
  if (communicator.rank() == 0) {
    say(closing_lines(request, result));
  }
}

}  // namespace tessera::engine
