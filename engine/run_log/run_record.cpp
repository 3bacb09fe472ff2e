#include "engine/run_log/run_record.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "engine/comm/texts_of_ranks.h"
#include "engine/files/atomic_file.h"
#include "engine/files/json_text.h"
#include "engine/files/written_bytes.h"
#include "engine/run_files/names.h"
#include "engine/run_files/test_results.h"
#include "engine/run_log/epoch_end.h"
#include "engine/run_log/write_budget.h"
#include "engine/system/clock.h"
#include "engine/system/test_point.h"
#include "engine/train/classification_report.h"
#include "engine/train/metrics/make_metric.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr const char* kGone =
    "the run folder, or metrics.jsonl in it, is gone: deleted, moved, or its disk removed";

// Removes an evaluation newer than the step being resumed from.
void remove_if_later(const std::filesystem::path& evaluation, Index step) {
  if (test_head(read_json_text(evaluation).value_or("")).step > step) {
    std::error_code ignored;  // the next evaluation replaces it
    std::filesystem::remove(evaluation, ignored);
  }
}

// Rank 0's, on all ranks.
std::optional<BestSoFar> shared_best(const std::optional<BestSoFar>& mine,
                                     const Communicator& communicator) {
  struct Numbers {
    bool any = false;
    Index step = 0;
    double value = 0;
    bool larger_is_better = true;
    bool is_share = true;
    double loss = 0;
  };
  const BestSoFar best = mine.value_or(BestSoFar());
  const MetricValue& score = best.tested.score;
  const Numbers numbers = communicator.share(Numbers{mine.has_value(),
                                                     best.step,
                                                     score.value,
                                                     score.larger_is_better,
                                                     score.is_share,
                                                     best.tested.loss});
  const std::string name = texts_of_ranks(communicator, score.name).front();
  if (!numbers.any) {
    return std::nullopt;
  }
  return BestSoFar{
      numbers.step,
      {{name, numbers.value, numbers.larger_is_better, numbers.is_share}, numbers.loss}};
}

}  // namespace

RunRecord::RunRecord(Options options, const Communicator& communicator)
    : options_(std::move(options)), communicator_(&communicator), trains_(&communicator) {
  on_root(*communicator_, [&] {
    folder_.emplace(options_.folder,
                    options_.goes_on ? options_.folder / run_file::kCheckpoint : options_.resume,
                    options_.replace);
    if (options_.goes_on) {
      // What a thread had not put on the disk yet is of a step that may not come again.
      finish_checkpoint(folder_->file(run_file::kBest), {});
      if (!goes_on_from_previous()) {
        finish_checkpoint(checkpoint_file(), options_.folder / run_file::kPreviousCheckpoint);
      }
    }
  });
  if (options_.monitor) {
    expect_meters(*options_.monitor, *communicator_);
  }
}

void RunRecord::begin(const partitioner::Network& network,
                      const partitioner::Partition& partition,
                      Index step,
                      bool owes_epoch,
                      std::vector<std::string> class_names,
                      const std::optional<double>& stood_s) {
  class_names_ = std::move(class_names);
  written_before_ = bytes_written();
  begun_s_ = now_s();
  BestFound found;
  Index since_best = 0;
  double begun_s = 0;
  // After the last step whose epoch has all that it leaves.
  const Index tested_step = owes_epoch ? step - 1 : step;
  on_root(*communicator_, [&] {
    folder_->prepare();
    find_checkpoint(step);
    metrics_.emplace(folder_->file(run_file::kMetrics), step, owes_epoch);
    test_point("metrics-opened");
    if (folder_->goes_on()) {
      found = best_in_folder(options_.folder, network, tested_step);
    }
    begun_s = std::max({metrics_->kept_until_s(),
                        open_devices(step, stood_s.has_value()),
                        stood_s ? metrics_->stepped_until_s() + *stood_s : 0});
    for (auto& damage :
         {metrics_->damage(), devices_ ? devices_->lines().damage() : std::nullopt}) {
      if (damage) {
        damage_.push_back(*damage);
      }
    }
    if (found.lost) {
      damage_.push_back(fmt::format("{}: the weights of the best test, after step {}, are lost",
                                    folder_->file(run_file::kBest).string(),
                                    *found.lost));
    }
    since_best =
        found.best ? count_evaluations(folder_->file(run_file::kMetrics), found.best->step) : 0;
    epochs_.emplace(folder_->file(run_file::kEpochs),
                    folder_->file(run_file::kMetrics),
                    score_name(network),
                    tested_step);
    remove_if_later(folder_->file(run_file::kEvaluation), step);
    remove_if_later(folder_->file(run_file::kBestEvaluation), step);
    write_atomically(folder_->file(run_file::kPartition), to_text(partition));
  });
  best_ = shared_best(found.best, *communicator_);
  checkpoint_step_ = communicator_->share(checkpoint_step_);
  clock_.emplace(*communicator_, begun_s);
  if (options_.monitor) {
    step_energy_ = EnergyInterval(metrics_ ? metrics_->stepped_energy() : RunEnergy());
    epoch_energy_ = EnergyInterval(metrics_ ? metrics_->tested_energy() : RunEnergy());
    monitor_.emplace(*options_.monitor,
                     *communicator_,
                     *clock_,
                     devices_ ? &*devices_ : nullptr,
                     metrics_ ? metrics_->said_j() : std::nullopt);
    monitor_->set_step(step);
  }
  since_best_ = communicator_->share(since_best);
}

bool RunRecord::goes_on_from_previous() const {
  return options_.resume.filename() == run_file::kPreviousCheckpoint;
}

// Rank 0's. One that was not fit to go on from must not take the place of the one that was; nor one
// of a step that is to come again.
void RunRecord::find_checkpoint(Index step) {
  const Index found = goes_on_from_previous() ? 0 : step_of_checkpoint(checkpoint_file());
  checkpoint_step_ = folder_->goes_on() ? found : step;
  keeps_checkpoint_ = !folder_->goes_on() || (!goes_on_from_previous() && checkpoint_step_ <= step);
}

TrainingObserver RunRecord::observer(Trainer& trainer, const TrainingState& begun) {
  trains_ = &trainer.execution().communicator();
  // Who has rested until now knows of no test and no checkpoint since.
  best_ = shared_best(best_, *trains_);
  since_best_ = trains_->share(since_best_);
  checkpoint_step_ = trains_->share(checkpoint_step_);
  return {
      .step = [this, &trainer](Index step,
                               const StepResult& result) { add_step(step, result, trainer); },
      .checkpoint = [this, &trainer, &begun](Index /*step*/) { save(trainer, begun); },
      .evaluation =
          [this, &trainer, &begun](Index /*step*/, double epoch, const EvaluationResult& result) {
            add_evaluation(trainer, begun, epoch, result);
          },
      .epoch =
          [this](Index step, double epoch) {
            on_root(*trains_, [&] {
              expect_there();
              test_point("epoch-told");
              epochs_->add_epoch(step, epoch);
              test_point("epoch-in-table");
            });
          },
      .end =
          [this](Index /*step*/) {
            settle();
            finish_monitor_of_all();
            on_root(*trains_, [&] {
              expect_there();
              metrics_->lines().sync();
            });
          },
      .stopped =
          [this](Index /*step*/) {
            settle();
            finish_monitor_of_all();
          },
      .failure =
          [this, &trainer, &begun](Index /*step*/) { keep_what_was_learnt(trainer, begun); }};
}

void RunRecord::write(const char* name, const std::string& text) {
  on_root(*communicator_, [&] { write_atomically(folder_->file(name), text); });
}

std::filesystem::path RunRecord::checkpoint_file() const {
  return options_.folder / run_file::kCheckpoint;
}

// Rank 0's. Returns when the last of the lines that are kept was written; 0: none is. Without a
// monitor lines of steps that are done again go away all the same.
double RunRecord::open_devices(Index step, bool after_fault) {
  const std::filesystem::path file = folder_->file(run_file::kDevices);
  if (options_.monitor || std::filesystem::exists(file)) {
    devices_.emplace(file, step, after_fault);
  }
  return devices_ ? devices_->kept_until_s() : 0;
}

void RunRecord::add_step(Index step, const StepResult& result, Trainer& trainer) {
  if (monitor_) {
    monitor_->set_step(step);
  }
  bool saved = false;  // rank 0's
  const auto record = [&] {
    const RunEnergy energy = monitor_ ? step_energy_.next(monitor_->energy()) : RunEnergy();
    metrics_->add_step(
        step, result, trainer.options().training.batch, {clock_->t_s(), energy.total_j});
    test_point("step-in-metrics");
    expect_there();
    saved = checkpoint_work_.is_done();
    (void)best_work_.is_done();
  };
  if (!trainer.runs_ahead()) {
    on_root(*trains_, record);
    if (unsettled_ && trains_->share(saved)) {
      note_saved();
    }
  } else if (communicator_->rank() == 0) {
    trainer.report(problem_of(record));
  }
}

void RunRecord::finish_monitor_of_all() {
  if (!options_.some_rest) {
    finish_monitor();
  }
}

void RunRecord::finish_monitor() {
  if (monitor_) {
    monitor_->finish();
  }
}

// Rank 0's. A file that is open can be written after its folder was deleted: nothing else would
// show it.
bool RunRecord::is_there() const {
  return folder_->is_there() && metrics_->lines().is_there();
}

void RunRecord::expect_there() const {
  if (!is_there()) {
    throw InputError(options_.folder.string(), 0, kGone);
  }
}

void RunRecord::save(Trainer& trainer, const TrainingState& begun) {
  trainer.expect_finite_parameters();
  settle();  // the best weights are there before a checkpoint of a later step
  const auto file = written(
      checkpoint_file(),
      keeps_checkpoint_ ? options_.folder / run_file::kPreviousCheckpoint : std::filesystem::path(),
      trainer,
      begun,
      std::nullopt);
  const Index step = trainer.steps_done();
  unsettled_ = step;
  checkpoint_step_ = step;
  if (file) {
    checkpoint_work_.start([this, file, step] {
      test_point("checkpoint-written");
      metrics_->lines().sync();
      if (options_.sync) {
        options_.sync();
      }
      file->commit();
      test_point("checkpoint-saved");
      if (options_.saved) {
        options_.saved(step);
      }
      test_point("checkpoint-told");
    });
  }
}

bool RunRecord::may_write_checkpoint() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(checkpoint_file(), error);
  return trains_->share(
      is_within_write_budget(static_cast<double>(bytes_written() - written_before_),
                             error ? 0 : static_cast<double>(size),
                             now_s() - begun_s_));
}

void RunRecord::settle() {
  settle_checkpoint();
  settle_best();
}

void RunRecord::settle_checkpoint() {
  on_root(*trains_, [&] { checkpoint_work_.finish(); });
  note_saved();
}

void RunRecord::settle_best() {
  on_root(*trains_, [&] { best_work_.finish(); });
}

void RunRecord::note_saved() {
  if (const auto step = std::exchange(unsettled_, std::nullopt)) {
    keeps_checkpoint_ = true;
    if (trains_->rank() != 0 && options_.saved) {
      options_.saved(*step);
    }
  }
}

// All but the commit, which is rank 0's; null on the others.
std::shared_ptr<SafetensorsWriter> RunRecord::written(const std::filesystem::path& file,
                                                      const std::filesystem::path& previous,
                                                      Trainer& trainer,
                                                      const TrainingState& begun,
                                                      const std::optional<TestResult>& tested) {
  TrainingState state = begun;
  state.step = trainer.steps_done();
  state.images_seen += (state.step - begun.step) * trainer.options().training.batch;
  state.tested = tested;
  state.latest_losses = trainer.latest_losses();
  return write_checkpoint(file,
                          previous,
                          state,
                          trainer.execution().parameters(),
                          trainer.optimizer(),
                          trainer.rank_state(),
                          *trains_);
}

void RunRecord::add_evaluation(Trainer& trainer,
                               const TrainingState& begun,
                               double epoch,
                               const EvaluationResult& result) {
  const Index step = trainer.steps_done();
  std::string text;  // rank 0's
  on_root(*trains_, [&] {
    const RunEnergy run = monitor_ ? monitor_->energy() : RunEnergy();
    const RunEnergy since_last = monitor_ ? epoch_energy_.next(run) : RunEnergy();
    test_point("test-made");
    metrics_->add_evaluation(step, epoch, result, clock_->t_s(), {since_last, run});
    test_point("test-in-metrics");
    expect_there();
    nlohmann::ordered_json json{{"step", step}, {"epoch", epoch}};
    json.update(evaluation_json(result, class_names_));
    text = json_text(json) + "\n";
    write_atomically(folder_->file(run_file::kEvaluation), text);
    test_point("test-in-evaluation");
  });
  BestSoFar now{step, {result.score(), result.loss}};
  if (const auto* objects = dynamic_cast<const DetectionMetrics*>(result.metric)) {
    now.tested.best_f1 = detection_curves(objects->judged()).best_f1();
  }
  if (!best_ || now.tested.better_than(best_->tested)) {
    settle_best();
    if (const auto file =
            written(options_.folder / run_file::kBest, {}, trainer, begun, now.tested)) {
      // The model last: a test is owed until that is there.
      best_work_.start([file, text, evaluation = folder_->file(run_file::kBestEvaluation)] {
        write_atomically(evaluation, text);
        test_point("best-written");
        file->commit();
        test_point("best-saved");
      });
    }
    best_ = now;
    since_best_ = 0;
  } else {
    ++since_best_;
  }
}

// Where it cannot be written either, the checkpoint of before stays.
void RunRecord::keep_what_was_learnt(Trainer& trainer, const TrainingState& begun) {
  checkpoint_work_.abandon();
  best_work_.abandon();
  unsettled_.reset();
  const int mine = trains_->rank() == 0 && is_there() ? 1 : 0;
  if (trains_->share(mine) == 0) {
    rescue(trainer, begun);
  }
  try {
    save(trainer, begun);
    settle_checkpoint();
  } catch (const AgreedError&) {  // the first error says more
  }
}

// Saves beside the run folder, which is gone, and says so.
void RunRecord::rescue(Trainer& trainer, const TrainingState& begun) {
  trainer.expect_finite_parameters();
  for (int attempt = 0; attempt < RunFolder::kRescueAttempts; ++attempt) {
    std::filesystem::path rescued;
    try {
      on_root(*trains_, [&] {
        rescued = folder_->make_rescue_folder(attempt);
        if (options_.rescue) {
          options_.rescue(rescued);
        }
        metrics_->lines().copy_to(rescued / run_file::kMetrics);
        if (devices_) {
          devices_->lines().copy_to(rescued / run_file::kDevices);
        }
        epochs_->copy_to(rescued / run_file::kEpochs);
      });
      const auto file = written(rescued / run_file::kCheckpoint, {}, trainer, begun, std::nullopt);
      on_root(*trains_, [&] { file->commit(); });
    } catch (const AgreedError&) {
      continue;  // no room there either
    }
    const std::string advice = options_.resume_advice ? options_.resume_advice(rescued) : "";
    throw AgreedError(fmt::format("{}: {}; training until step {} is saved in {}{}{}",
                                  options_.folder.string(),
                                  kGone,
                                  trainer.steps_done(),
                                  rescued.string(),
                                  advice.empty() ? "" : "; to continue: ",
                                  advice));
  }
  throw AgreedError(fmt::format(
      "{}: {}; the weights could not be saved anywhere else", options_.folder.string(), kGone));
}

}  // namespace tessera::engine
