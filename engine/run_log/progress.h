// Progress of a run on rank 0's standard output: a line per step, or a bar on a terminal.

#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

// How progress is shown.
enum class ProgressStyle { None, Line, Bar };

class Progress {
 public:
  // A bar never takes a second line of a terminal of so many columns.
  Progress(ProgressStyle style, Index first_step, Index last_step, int columns = 80);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(Index step, const StepResult& result, Index images);
  void evaluation(Index step, double epoch, const EvaluationResult& result);

 private:
  struct Seen {
    Index images = 0;
    double seconds = 0;
  };

  [[nodiscard]] std::string time_left(Index step) const;
  [[nodiscard]] std::string speed() const;

  ProgressStyle style_;
  std::size_t columns_;  // of a bar
  Index first_step_;
  Index last_step_;
  double started_s_;
  double shown_s_ = 0;
  std::deque<Seen> latest_;   // steps, the last one last
  bool bar_is_open_ = false;  // the cursor is behind a bar
};

}  // namespace tessera::engine
