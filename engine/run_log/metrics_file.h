// DIR/metrics.jsonl of a run: one JSON object per line, for each step and each evaluation. Rank 0
// alone has it.

#pragma once

#include <filesystem>
#include <optional>

#include "engine/files/json_lines.h"
#include "engine/monitor/energy_account.h"
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
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on.
  MetricsFile(const std::filesystem::path& path, Index resumed_step);

  // When the last of the lines that were kept was written, in seconds of the run; 0: none was.
  [[nodiscard]] double kept_until_s() const { return kept_until_s_; }

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
  double kept_until_s_ = 0;  // set while lines_ is read: so declared before it
  JsonLines lines_;
};

// Whether such a file has the evaluation of a step.
[[nodiscard]] bool has_evaluation(const std::filesystem::path& path, Index step);

// The evaluations in such a file that came after a step.
[[nodiscard]] Index count_evaluations(const std::filesystem::path& path, Index step);

}  // namespace tessera::engine
