// DIR/metrics.jsonl of a run: one JSON object per line, for each step and each evaluation. Rank 0
// alone has it.

#pragma once

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/files/json_lines.h"
#include "engine/monitor/energy_account.h"
#include "engine/run_files/metrics.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

// Energy that goes with an evaluation; nothing where there is no meter.
struct EvaluationEnergy {
  RunEnergy since_last;  // evaluation, or the start
  RunEnergy run;
};

class MetricsFile {
 public:
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on, but for
  // a test after that very step where it is still to be made (`owes_test`).
  MetricsFile(const std::filesystem::path& path, Index resumed_step, bool owes_test = false);

  // When the last of the lines that were kept was written, in seconds of the run; 0: none was.
  [[nodiscard]] double kept_until_s() const { return kept_until_s_; }

  // When the last step of all was done, also one that is done again; 0: none was.
  [[nodiscard]] double stepped_until_s() const { return stepped_until_s_; }

  // Energy until the last step and until the last evaluation that were kept, of all devices.
  [[nodiscard]] const RunEnergy& stepped_energy() const { return stepped_energy_; }
  [[nodiscard]] const RunEnergy& tested_energy() const { return tested_energy_; }
  // The larger one of these two.
  [[nodiscard]] std::optional<double> said_j() const {
    return std::max(stepped_energy_.total_j, tested_energy_.total_j);
  }

  // What the file has lost of the steps before, in words that begin with its path: lines that
  // cannot be read, as half a line that a power cut has left, and steps that have no line between
  // the first one that has and the step from which the run goes on. Nothing where all is there.
  [[nodiscard]] std::optional<std::string> damage() const;

  // What a line says beside the results: seconds since the start of the run, and joules of all
  // devices since the last line about a step.
  struct Course {
    double t_s = 0;
    std::optional<double> energy_j = {};
  };

  // Throw InputError where the line cannot be written; no part of it stays.
  void add_step(Index step, const StepResult& result, Index images, const Course& course);
  void add_evaluation(Index step,
                      double epoch,
                      const EvaluationResult& result,
                      double t_s,
                      const EvaluationEnergy& energy = {});

  [[nodiscard]] JsonLines& lines() { return lines_; }
  [[nodiscard]] const JsonLines& lines() const { return lines_; }

 private:
  void take_in(const StepRecord& record);
  void take_in(const EvaluationRecord& record);
  void expect_step(Index step);

  // Set while lines_ is read: so declared before it.
  double kept_until_s_ = 0;
  double stepped_until_s_ = 0;
  RunEnergy stepped_energy_;
  RunEnergy tested_energy_;
  std::filesystem::path path_;
  Index last_step_ = 0;  // that has a line; 0: none has
  Index missing_ = 0;    // steps without one, and the first and the last of them
  Index first_missing_ = 0;
  Index last_missing_ = 0;
  JsonLines lines_;
};

// The loss of the first step that such a file has; nothing where it has none.
[[nodiscard]] std::optional<double> first_loss(const std::filesystem::path& path);

// Whether such a file has the evaluation of a step.
[[nodiscard]] bool has_evaluation(const std::filesystem::path& path, Index step);

// The evaluations in such a file that came after a step.
[[nodiscard]] Index count_evaluations(const std::filesystem::path& path, Index step);

// The best evaluation in such a file up to a step, by a score of that kind; nothing where there is
// none.
[[nodiscard]] std::optional<BestSoFar> best_evaluation(const std::filesystem::path& path,
                                                       const MetricValue& score,
                                                       Index step);

}  // namespace tessera::engine
