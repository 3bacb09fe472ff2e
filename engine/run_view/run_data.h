// What the folder of a training run tells about it, as plain values: see engine/running.md for its
// files. The folder may be of a run that goes on, of one that was killed, or of an earlier version
// of this program: what a file does not say is unknown here, and what is missing is left empty.
//
// Seconds `t_s` count from the start of the run; they go on where a run was resumed. Steps count
// from 1. Numbers that are unknown are NaN.

#pragma once

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_view/plan_outline.h"
#include "partitioner/base/region.h"
#include "partitioner/base/training_figures.h"
#include "partitioner/memory/memory.h"

namespace tessera::engine {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
[[nodiscard]] inline bool known(double number) {
  return !std::isnan(number);
}

enum class RunState {
  Empty,        // nothing of a run is there yet
  Running,      // a process has the folder
  Finished,     // its last step is done
  Interrupted,  // by a signal, or killed: it can be resumed from its checkpoint
  Failed        // by an error, or because other ranks vanished
};
[[nodiscard]] const char* name_of(RunState state);  // "running"

struct RunRank {
  int rank = 0;
  std::string host;
  int threads = 0;
};

// run.json: what was started. Texts are as the user gave them, any bytes: printable() them.
struct RunInfo {
  std::string version;
  std::string model;    // its path
  std::string data;     // likewise
  std::string command;  // that started it
  std::string started;  // UTC, "2026-11-26T07:10:20Z"; of a resumed run, its first start
  std::string ended;    // empty while it is running
  Index first_step = 0;
  Index last_step = 0;    // that it is to reach
  Index epoch_steps = 0;  // of each epoch; 0: unknown
  Index batch = 0;        // images of a step
  Index seed = 0;
  Index replicas = 0;                // 0: unknown
  std::string sync;                  // how these are synchronised
  std::string gradient_precision;    // how gradients travel
  std::vector<std::string> inexact;  // why training is not what one device computes
  Index training_pictures = 0;
  Index testing_pictures = 0;
  std::vector<std::string> class_names;
  std::vector<RunRank> ranks;
  double predicted_step_s = kUnknown;    // where there is a profile of the cluster
  double memory_limit_bytes = kUnknown;  // of each rank, where one was given
  SentMessages sent;                     // since the run was last started
  // By rank 0, into files: likewise, once it has ended.
  double written_bytes = kUnknown;
  double written_s = kUnknown;
  // Where pictures were kept once they were decoded: "memory", a folder or "off"; empty: nowhere,
  // or unknown.
  std::string cache_place;
  double cache_bytes = kUnknown;  // of all machines together, as the rest
  double cache_kept = kUnknown;   // readings of pictures that were there
  double cache_decoded = kUnknown;

  // How many steps an epoch has, which need not be a whole number; 0: unknown.
  [[nodiscard]] double steps_of_epoch() const {
    return training_pictures > 0 && batch > 0
               ? static_cast<double>(training_pictures) / static_cast<double>(batch)
               : static_cast<double>(epoch_steps);
  }
};

// A line of metrics.jsonl about a step. Seconds are those of rank 0; those of exchanges are part of
// forward, backward and update. Where it stands for several lines, it is that of the last one, with
// the mean of their energy.
struct StepRecord {
  Index step = 0;
  Index lines = 1;        // that it stands for, see run_limits.h
  double t_s = kUnknown;  // at its end
  double loss = kUnknown;
  double learning_rate = kUnknown;
  double step_s = kUnknown;
  double images_per_s = kUnknown;
  double load_s = kUnknown;
  double forward_s = kUnknown;
  double backward_s = kUnknown;
  double update_s = kUnknown;
  double exchange_s = kUnknown;
  double energy_j = kUnknown;  // of all devices
};

// A line of metrics.jsonl about an evaluation; the best of several lines.
struct EvaluationRecord {
  Index step = 0;
  Index lines = 1;  // that it stands for, see run_limits.h
  double epoch = kUnknown;
  double accuracy = kUnknown;  // 0 to 1; of a detector mean average precision at an overlap of 0.5
  double test_loss = kUnknown;
  double test_pictures = kUnknown;
  double energy_j = kUnknown;      // of the epoch, all devices
  double run_energy_j = kUnknown;  // of the run until then, all devices
};

// A line of devices.jsonl: a rank in a second. Counters are since the start of the process. Where
// it stands for several lines, counters are those of the last one, power is the mean, and memory,
// temperature and throttling are the highest.
struct DeviceSample {
  Index lines = 1;  // that it stands for, see run_limits.h
  double t_s = kUnknown;
  int rank = 0;
  Index step = 0;
  double cpu_user_s = kUnknown;
  double cpu_system_s = kUnknown;
  double wait_s = kUnknown;
  double rss_bytes = kUnknown;
  double free_bytes = kUnknown;
  double rx_bytes = kUnknown;
  double tx_bytes = kUnknown;
  double rx_packets = kUnknown;
  double tx_packets = kUnknown;
  double temperature_c = kUnknown;
  double clock_hz = kUnknown;
  double throttled = kUnknown;  // flags; 0: not throttled
  double power_w = kUnknown;
  double energy_j = kUnknown;  // since the start of the run
};

struct RunDevice {
  std::string host;
  std::string power_source;            // of its last sample that has one; empty: none
  double energy_j = kUnknown;          // by its last sample that has it
  double cluster_energy_j = kUnknown;  // likewise, of all devices together, where a meter says so
  std::vector<DeviceSample> samples;   // by time
  Index joined = 1;                    // lines that a sample stands for at most
};

// A line of events.jsonl. Kinds: start, resume, choose, checkpoint, best, epoch, warning, signal,
// finish, failure, fault, return, recovery; others may follow.
struct RunEvent {
  double t_s = kUnknown;
  Index step = 0;
  int rank = -1;  // -1: of all
  std::string kind;
  std::string text;
};
// Whether such events come about every epoch.
[[nodiscard]] inline bool is_routine(const std::string& kind) {
  return kind == "checkpoint" || kind == "epoch" || kind == "best";
}

// What all events say of the faults that the run has gone on after; dropped ones count.
struct RunFaults {
  Index faults = 0;
  double lost_s = 0;  // until the steps after them
  Index repeated_steps = 0;
};

// A line of timing.jsonl: where the seconds of a mean step of a rank went. They add up to step_s.
struct StepTiming {
  double t_s = kUnknown;
  Index step = 0;   // the last of those
  Index steps = 0;  // how many the mean is of
  int rank = 0;
  double step_s = kUnknown;
  double loading_s = kUnknown;     // waiting for pictures
  double forward_s = kUnknown;     // computing
  double backward_s = kUnknown;    // computing
  double update_s = kUnknown;      // computing
  double exchanging_s = kUnknown;  // packing, sending, unpacking
  double waiting_s = kUnknown;     // for messages

  [[nodiscard]] double computing_s() const { return forward_s + backward_s + update_s; }
};

// memory.json: bytes of a rank.
struct RankMemory {
  int rank = 0;
  partitioner::MemoryUse planned;
  partitioner::MemoryUse measured;
  double peak_resident_bytes = kUnknown;
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

  std::optional<RunInfo> info;
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
  std::string plan_json;
  std::string timeline_json;         // events in Chrome's format, as of `time --trace`
  std::string evaluation_json;       // classes, confusion matrix and curves of the last evaluation
  std::string best_evaluation_json;  // likewise of the best, whose weights are kept
  std::string partition_toml;

  // PNG files of a detector's run, see run_log/detection_sheets.h; of read_run() alone.
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
