#include "engine/run_log/run_log.h"

#include <fmt/format.h>
#include <utility>

#include "engine/comm/texts_of_ranks.h"
#include "engine/files/atomic_file.h"
#include "engine/ops/loops/threads.h"
#include "engine/run_files/names.h"
#include "engine/system/test_point.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

std::vector<RunRank> RunLog::gather_ranks() const {
  const std::vector<std::string> hosts = hosts_of_ranks(*communicator_);
  const std::vector<int> threads_of_ranks = communicator_->of_ranks(threads());
  std::vector<RunRank> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ranks.push_back({static_cast<int>(rank), hosts[rank], threads_of_ranks[rank]});
  }
  return ranks;
}

void RunLog::begin(Start start, const RunRecord& record, Trainer& trainer, Index last_step) {
  record_ = &record;
  folder_ = start.folder;
  start.summary.ranks = gather_ranks();
  const Index step = trainer.steps_done();
  on_root(*communicator_, [&] { open_files(start, step); });
  follow(std::move(start.predicted), trainer, last_step);
}

void RunLog::follow(PredictedSteps predicted, Trainer& trainer, Index last_step) {
  const Communicator& trains = trainer.execution().communicator();
  const RunClock& clock = record_->clock();
  const Index step = trainer.steps_done();
  timing_.reset();
  on_root(trains, [&] {
    timing_.emplace(folder_ / run_file::kTiming, step, predicted.per_rank, clock, trains);
    if (const auto damage = timing_->damage()) {
      warn(*damage);
    }
  });
  if (!timing_) {
    timing_.emplace(std::nullopt, step, std::vector<StepShares>(), clock, trains);
  }
  timeline_.emplace(trainer, last_step, std::move(predicted.actions_s), clock, trains);
}

void RunLog::go_on(const std::string& plan_json,
                   PredictedSteps predicted,
                   Trainer& trainer,
                   Index last_step) {
  if (communicator_->rank() == 0) {
    attempt([&] { summary_.predict(predicted.step_s); });
    attempt([&] { write_atomically(folder_ / run_file::kPlan, plan_json + "\n"); });
  }
  follow(std::move(predicted), trainer, last_step);
}

// Rank 0's. The log is worth less than the run: what cannot be written is left out, with a warning.
template <class Work>
void RunLog::attempt(Work work) {
  try {
    work();
  } catch (const InputError& error) {
    warn(error.what());
  }
}

void RunLog::open_files(Start& start, Index step) {
  const std::string ranks = counted(communicator_->size(), "rank");
  const std::filesystem::path file = folder_ / run_file::kEvents;
  if (const auto damage = events_.open(file, step, record_->clock(), start.owes_epoch)) {
    warn(*damage);
  }
  test_point("events-opened");
  const Index saved_step = record_->goes_on() ? record_->checkpoint_step() : 0;
  if (saved_step > 0 && saved_step <= step && !has_checkpoint_event(file, saved_step)) {
    saved(saved_step);
  }
  if (start.tell_before) {
    start.tell_before();
  }
  if (step > 0) {
    events_.add("resume", fmt::format("resumed after step {} on {}", step, ranks));
  } else {
    events_.add("start", fmt::format("started on {}", ranks));
  }
  start.summary.first_step = step + 1;
  attempt([&] {
    summary_.begin(folder_ / run_file::kRun, std::move(start.summary), record_->goes_on());
  });
  attempt([&] { write_atomically(folder_ / run_file::kPlan, start.plan_json + "\n"); });
}

TrainingObserver RunLog::observer() {
  return {.step =
              [this](Index step, const StepResult& result) {
                events_.set_step(step);
                timing_->add(step, result.times);
                if (const auto text = timeline_->after(step)) {  // on all ranks
                  if (communicator_->rank() == 0) {
                    attempt([&] { write_atomically(folder_ / run_file::kTimeline, *text); });
                  }
                }
              },
          .evaluation =
              [this](Index step, double epoch, const EvaluationResult& result) {
                add_evaluation(step, epoch, result);
              },
          .end = [this](Index /*step*/) { timing_->flush(); }};
}

void RunLog::saved(Index step) {
  if (communicator_->rank() == 0) {
    events_.add("checkpoint", fmt::format("checkpoint after step {}", step), -1, step);
  }
}

void RunLog::add_evaluation(Index step, double epoch, const EvaluationResult& result) {
  timing_->flush();
  timeline_->forget();
  if (communicator_->rank() == 0) {
    const bool best = record_->best() && record_->best()->step == step;
    events_.add(best ? "best" : "epoch",
                fmt::format("epoch {}: test {}, test loss {:.4f}{}",
                            epoch_number(step, epoch),
                            described(result.score()),
                            result.loss,
                            best ? ", the best so far" : ""));
    test_point("test-in-events");
  }
}

void RunLog::draw_sheets(Index step,
                         Index passes,
                         const BatchSource* training,
                         const BatchSource* testing,
                         const DetectionMetrics& metrics) {
  const auto write = [&](const char* name, const RgbPicture& sheet) {
    AtomicFile file(folder_ / name);
    file.write(sheet.png());
    file.commit();
  };
  if (training != nullptr) {
    attempt([&] { write(run_file::kTrainingSheet, training_sheet(*training, step, passes)); });
  }
  test_point("sheet-drawn");
  if (testing != nullptr) {
    attempt([&] { write(run_file::kTestSheet, test_sheet(*testing, step, metrics)); });
  }
}

void RunLog::end(const std::string& state, const std::string& reason, int exit_code) {
  if (communicator_->rank() == 0 && summary_.end(state, reason, exit_code)) {
    const char* kind = state == "finished" ? "finish" : state == "failed" ? "failure" : "signal";
    events_.add(kind, reason.empty() ? state : reason);
  }
}

}  // namespace tessera::engine
