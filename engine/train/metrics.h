// DIR/metrics.jsonl of a run: one JSON object per line, for each step and each evaluation. Rank 0
// alone has it.
//
// The file may be taken away during the run, with its folder or its disk: what was written is then
// still to be read from here.

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class Metrics {
 public:
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on.
  Metrics(const std::filesystem::path& path, Index resumed_step);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Throw InputError where the line cannot be written; no part of it stays.
  void add_step(Index step, const StepResult& result, Index images);
  void add_evaluation(Index step, double epoch, const EvaluationResult& result);

  // The lines are on the disk afterwards. Throws InputError where that cannot be.
  void sync();

  // Whether the path still names the file that is written.
  [[nodiscard]] bool is_there() const;

  // Writes all lines into another file. Throws InputError.
  void copy_to(const std::filesystem::path& path) const;

 private:
  void add_line(const std::string& line);
  [[noreturn]] void fail(const char* action, int error_number) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;  // of whole lines
};

}  // namespace tessera::engine
