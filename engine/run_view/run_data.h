// What the folder of a training run tells about it, as plain values: see engine/run_files/ for the
// records of its files. The folder may be of a run that goes on, of one that was killed, or of an
// earlier version of this program: what a file does not say is unknown here, and what is missing is
// left empty.
//
// Seconds `t_s` count from the start of the run; they go on where a run was resumed. Steps count
// from 1. Numbers that are unknown are NaN.

#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_files/device_sample.h"
#include "engine/run_files/metrics.h"
#include "engine/run_files/plan_outline.h"
#include "engine/run_files/rank_memory.h"
#include "engine/run_files/run_event.h"
#include "engine/run_files/run_summary.h"
#include "engine/run_files/step_timing.h"

namespace tessera::engine {

enum class RunState {
  Empty,        // nothing of a run is there yet
  Running,      // a process has the folder
  Finished,     // its last step is done
  Interrupted,  // by a signal, or killed: it can be resumed from its checkpoint
  Failed        // by an error, or because other ranks vanished
};
[[nodiscard]] const char* name_of(RunState state);            // "running"
[[nodiscard]] RunState state_named(const std::string& name);  // another name: Interrupted

struct RunDevice {
  std::string host;
  std::string power_source;            // of its last sample that has one; empty: none
  double energy_j = kUnknown;          // by its last sample that has it
  double cluster_energy_j = kUnknown;  // likewise, of all devices together, where a meter says so
  std::vector<DeviceSample> samples;   // by time
  Index joined = 1;                    // lines that a sample stands for at most
};

// Whether such events come about every epoch.
[[nodiscard]] inline bool is_routine(const RunEvent& event) {
  return is_checkpoint(event) || is_test(event);
}

// What all events say of the faults that the run has gone on after; dropped ones count.
struct RunFaults {
  Index faults = 0;
  double lost_s = 0;  // until the steps after them
  Index repeated_steps = 0;
};

// How many lines a record stands for, but for the last one of its kind, which may stand for less.
struct JoinedLines {
  Index steps = 1;
  Index evaluations = 1;
  Index samples = 1;
};

struct RunData {
  std::filesystem::path folder;
  RunState state = RunState::Empty;
  std::string reason;  // of how it ended, a sentence; empty: nothing to say

  std::optional<RunSummary> info;
  std::vector<StepRecord> steps;
  bool finds_objects = false;  // a detector, by what its evaluations say
  std::vector<EvaluationRecord> evaluations;
  std::map<int, RunDevice> devices;  // by rank
  std::size_t samples = 0;           // of all devices
  std::vector<RunEvent> events;
  Index dropped_events = 0;  // of a run with very many
  RunFaults faults;
  JoinedLines joined;
  std::vector<StepTiming> timings;
  std::vector<StepTiming> predicted;  // one for each rank, where there is a profile
  std::vector<RankMemory> memory;     // once the run has ended
  std::optional<PlanOutline> plan;    // plan.json

  // Whole files as they are, for those who show all of them; empty where they are missing or
  // damaged.
  std::string timeline_json;         // events in Chrome's format, as of `time --trace`
  std::string evaluation_json;       // classes, confusion matrix and curves of the last evaluation
  std::string best_evaluation_json;  // likewise of the best, whose weights are kept

  // PNG files of a detector's run, see run_log/detection_sheets.h; where they are asked for.
  std::string training_sheet;
  std::string test_sheet;

  // What could not be read and was left out: files with how many of their lines, or 1 for a whole
  // file.
  std::map<std::string, Index> damaged;

  // Those that there are now, by what says it; 0: nothing does. Devices may have more.
  [[nodiscard]] int ranks() const;
  [[nodiscard]] Index last_step_done() const { return steps.empty() ? 0 : steps.back().step; }
};

}  // namespace tessera::engine
