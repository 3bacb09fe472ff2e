// DIR/timing.jsonl of a run: now and then, where the seconds of a mean step of each rank went.

#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/run_clock.h"
#include "engine/files/json_lines.h"
#include "engine/run_files/step_timing.h"
#include "engine/train/trainer.h"

namespace tessera::engine {

class StepTimingFile {
 public:
  // Rank 0 has the file: starts it afresh, or keeps the lines up to `resumed_step` of a run that
  // goes on; other ranks give no path. `predicted`, of each rank, comes first. The clock must
  // outlive this. Throws InputError.
  StepTimingFile(const std::optional<std::filesystem::path>& path,
                 Index resumed_step,
                 const std::vector<StepShares>& predicted,
                 const RunClock& clock,
                 const Communicator& communicator);

  // As JsonLines::damage(), of rank 0.
  [[nodiscard]] std::optional<std::string> damage() const {
    return lines_ ? lines_->damage() : std::nullopt;
  }

  // Adds a step of this rank. All ranks call this together; about every ten seconds they flush().
  void add(Index step, const StepTimes& times);
  // Writes the mean of each rank since the last time. All ranks call this together.
  void flush();

 private:
  void write(int rank, const StepShares& shares, bool predicted);

  const RunClock* clock_;
  const Communicator* communicator_;
  std::optional<JsonLines> lines_;  // rank 0
  StepShares sum_;                  // since the last time
  Index step_ = 0;
  Index steps_ = 0;         // in the sum
  Index period_steps_ = 3;  // from one time to the next, the same on all ranks
};

}  // namespace tessera::engine
