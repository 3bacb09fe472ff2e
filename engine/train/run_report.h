// What a run leaves behind for people and programs: DIR/metrics.jsonl, DIR/memory.json, and a line
// a step on the terminal. Only rank 0 writes.

#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "partitioner/memory.h"

namespace engine {

// What a rank has allocated for its network, by kind; without pictures.
[[nodiscard]] partitioner::MemoryUse measured_memory(const ExecutionMemory& execution,
                                                     Index optimizer_bytes);

// Planned and measured memory of each rank; what the program took before there was a network is no
// plan but known, and stands in both. All ranks call this together; the text is on rank 0.
[[nodiscard]] std::string memory_json(const std::vector<partitioner::MemoryUse>& planned,
                                      const partitioner::MemoryUse& measured,
                                      const Communicator& communicator);

// A table of the same file, for people.
[[nodiscard]] std::string memory_table(const std::string& json);

// DIR/metrics.jsonl: a JSON object a line, for each step and each evaluation.
class Metrics {
 public:
  // Starts the file afresh, or keeps the lines up to `resumed_step` of a run that goes on.
  Metrics(const std::filesystem::path& path, Index resumed_step);

  // Throw InputError where the line cannot be written; no part of it stays.
  void add_step(Index step, const StepResult& result, Index images);
  void add_evaluation(Index step, double epoch, const EvaluationResult& result);

 private:
  void add_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  std::uintmax_t bytes_ = 0;  // of whole lines
};

// Prints on standard output and goes on where that cannot be written: training is worth more than
// what is said about it.
void say(const std::string& text);

// How progress is told on rank 0's standard output.
enum class ProgressStyle { None, Line, Bar };

class Progress {
 public:
  Progress(ProgressStyle style, Index first_step, Index last_step);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(Index step, const StepResult& result, Index images);
  void evaluation(Index step, double epoch, const EvaluationResult& result);

 private:
  [[nodiscard]] std::string time_left(Index step) const;

  ProgressStyle style_;
  Index first_step_;
  Index last_step_;
  double started_s_;
  double shown_s_ = 0;
  bool bar_is_open_ = false;  // the cursor is behind a bar
};

}  // namespace engine
