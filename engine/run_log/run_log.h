// The log of a training run beside its metrics, for those who watch it or look at it later: what
// was started and how it ended, its plan, what happened when, where the time of steps goes, one
// step action by action, and pictures of a detector. Files run.json, plan.json, events.jsonl,
// timing.jsonl, timeline.json, training-pictures.png and test-pictures.png of the run folder;
// engine/run_view reads them.
//
// Rank 0 has the files. Where all of them vanish or a disk is full, RunRecord says so.

#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_files/names.h"
#include "engine/run_log/detection_sheets.h"
#include "engine/run_log/event_log.h"
#include "engine/run_log/run_record.h"
#include "engine/run_log/run_summary_file.h"
#include "engine/run_log/step_timeline.h"
#include "engine/run_log/step_timing.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

// What a profile of the cluster predicts for steps of a run; empty where there is none.
struct PredictedSteps {
  std::optional<double> step_s;
  std::vector<StepShares> per_rank;
  std::vector<std::vector<double>> actions_s;  // as in TracedStep
};

class RunLog {
 public:
  explicit RunLog(const Communicator& communicator) : communicator_(&communicator) {}

  struct Start {
    std::filesystem::path folder;
    RunSummary summary;     // without ranks
    std::string plan_json;  // as `plan --json` prints it
    PredictedSteps predicted;
    bool owes_epoch = false;                 // see RunRecord::begin()
    std::function<void()> tell_before = {};  // events of before it begins or goes on
  };
  // After the record has begun; `start` is rank 0's. The record and the trainer must outlive the
  // run. All ranks call this together; errors are AgreedErrors.
  void begin(Start start, const RunRecord& record, Trainer& trainer, Index last_step);

  // The run goes on under another plan: by those who take part in it from now on, which call this
  // together. The plan is rank 0's.
  void go_on(const std::string& plan_json,
             PredictedSteps predicted,
             Trainer& trainer,
             Index last_step);

  // To be added after the record's.
  [[nodiscard]] TrainingObserver observer();

  // Draws pictures of a detector that was just tested, after a step of so many passes, see
  // detection_sheets.h. On rank 0; a source is null where it does not read. What cannot be drawn or
  // written is left out, with a warning.
  void draw_sheets(Index step,
                   Index passes,
                   const BatchSource* training,
                   const BatchSource* testing,
                   const DetectionMetrics& metrics);

  // Adds a warning. Any thread of any rank may call it; rank 0's are kept.
  void warn(const std::string& text) { events_.add("warning", text); }

  // Adds an event: `kind` is a word. On rank 0.
  void tell(const std::string& kind, const std::string& text, const EventDetails& details = {}) {
    events_.add(kind, text, -1, {}, details);
  }
  // Puts events on the disk, before a checkpoint on which a run that goes on from it relies. On
  // rank 0, in any thread.
  void sync() { events_.sync(); }
  // That a checkpoint after that step is on the disk. Any thread of any rank may call it; rank 0's
  // is kept.
  void saved(Index step);
  // What all ranks have sent in the steps, to be written when the run ends.
  void sent(SentMessages sent) { summary_.set_sent(std::move(sent)); }
  // What keeping pictures has come to, likewise.
  void cache(std::optional<PictureCacheUse> use) { summary_.set_cache(std::move(use)); }

  // How the run ended: "finished", "interrupted" or "failed", why, and the exit code of its
  // process. The first end counts. Any thread of any rank may call it; rank 0's is kept.
  void end(const std::string& state, const std::string& reason, int exit_code);

  // Saves what happened in another folder.
  void copy_to(const std::filesystem::path& folder) { events_.copy_to(folder / run_file::kEvents); }

 private:
  [[nodiscard]] std::vector<RunRank> gather_ranks() const;
  template <class Work>
  void attempt(Work work);
  void open_files(Start& start, Index step);
  void follow(PredictedSteps predicted, Trainer& trainer, Index last_step);
  void add_evaluation(Index step, double epoch, const EvaluationResult& result);

  const Communicator* communicator_;
  const RunRecord* record_ = nullptr;
  std::filesystem::path folder_;
  EventLog events_;
  RunSummaryFile summary_;
  std::optional<StepTimingFile> timing_;
  std::optional<StepTimeline> timeline_;
};

}  // namespace tessera::engine
