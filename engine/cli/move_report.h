// How far moving samples is, on rank 0's standard output: a bar, or a line now and then.

#pragma once

#include <string>

#include "engine/moving/sample_move.h"
#include "engine/run_log/progress.h"

namespace tessera::engine {

class MoveReport {
 public:
  explicit MoveReport(ProgressStyle style);
  ~MoveReport();
  MoveReport(const MoveReport&) = delete;
  MoveReport& operator=(const MoveReport&) = delete;

  // First with nothing moved.
  void show(const MoveProgress& progress);

  // A line of its own.
  void say_more(const std::string& text);

 private:
  [[nodiscard]] static std::string start_line(const MoveProgress& progress);

  ProgressStyle style_;
  bool begun_ = false;
  bool bar_is_open_ = false;
  double started_s_ = 0;
  double shown_s_ = 0;
};

}  // namespace tessera::engine
