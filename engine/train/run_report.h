// What a run leaves behind for people and programs beside its metrics: DIR/memory.json, and a line
// a step on the terminal. Only rank 0 writes.

#pragma once

#include <string>
#include <vector>

#include "engine/train/evaluation.h"
#include "engine/train/trainer.h"
#include "partitioner/memory/memory.h"

namespace tessera::engine {

// What a rank has allocated for its network, by kind; without pictures.
[[nodiscard]] partitioner::MemoryUse measured_memory(const ExecutionMemory& execution,
                                                     Index optimizer_bytes);

// Memory of each rank as it was planned before the run, beside what was measured. All ranks call
// this together; the text is on rank 0.
[[nodiscard]] std::string memory_json(const std::vector<partitioner::MemoryUse>& planned,
                                      const partitioner::MemoryUse& measured,
                                      const Communicator& communicator);

// A table of the same file, for people.
[[nodiscard]] std::string memory_table(const std::string& json);

// Prints on standard output and goes on where that cannot be written: training is worth more than
// what is said about it.
void say(const std::string& text);

// How progress is told on rank 0's standard output.
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
  [[nodiscard]] std::string time_left(Index step) const;

  ProgressStyle style_;
  std::size_t columns_;  // of a bar
  Index first_step_;
  Index last_step_;
  double started_s_;
  double shown_s_ = 0;
  bool bar_is_open_ = false;  // the cursor is behind a bar
};

}  // namespace tessera::engine
