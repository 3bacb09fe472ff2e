// DIR/events.jsonl of a run: what happened when, a JSON object per line. Rank 0 alone has it; any
// thread may add to it. An event that cannot be written is lost: it never ends a run.

#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "engine/comm/run_clock.h"
#include "engine/files/json_lines.h"

namespace tessera::engine {

// What faults have cost.
struct FaultCost {
  double lost_s = 0;  // until training went on
  Index repeated_steps = 0;
};

// What an event says beside its text.
struct EventDetails {
  std::string device = {};
  double ago_s = 0;  // since it happened; it is never told of as before another event
  std::optional<FaultCost> cost = {};
};

class EventLog {
 public:
  // Starts the file afresh, or keeps what is in it of a run that goes on, but for results of steps
  // behind `resumed_step`, and of a test after that step which is still to be made (`owes_test`):
  // why it was resumed stays. Events of before are written now. Throws InputError. Returns what was
  // left out, as JsonLines::damage() does.
  std::optional<std::string> open(const std::filesystem::path& path,
                                  Index resumed_step,
                                  const RunClock& clock,
                                  bool owes_test = false);

  // How many steps are done.
  void set_step(Index step) { step_ = step; }

  // `kind` is a word; `rank` the one that it is about, -1: all; `step` the one that it is about,
  // nothing: the last one.
  void add(const std::string& kind,
           const std::string& text,
           int rank = -1,
           const std::optional<Index>& step = {},
           const EventDetails& details = {});

  // Puts what there is on the disk, as far as it can.
  void sync();

  // Writes what there is into another file, as far as it can.
  void copy_to(const std::filesystem::path& path);

 private:
  // Held for no longer than writing a line takes; who ends the process waits for it only so long.
  std::timed_mutex mutex_;
  std::optional<JsonLines> lines_;
  double last_s_ = 0;  // of the last event
  std::optional<RunClock> clock_;
  std::string early_;  // lines of before there was a file
  std::atomic<Index> step_{0};
};

// Whether such a file tells of a checkpoint after that step, or of a test.
[[nodiscard]] bool has_checkpoint_event(const std::filesystem::path& path, Index step);
[[nodiscard]] bool has_test_event(const std::filesystem::path& path, Index step);

}  // namespace tessera::engine
