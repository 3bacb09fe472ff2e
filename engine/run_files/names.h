// The files of a run folder: their names, and what starting a run does to each.

#pragma once

namespace tessera::engine {

namespace run_file {
inline constexpr const char* kLock = "run.lock";
inline constexpr const char* kMetrics = "metrics.jsonl";
inline constexpr const char* kDevices = "devices.jsonl";
inline constexpr const char* kEvents = "events.jsonl";
inline constexpr const char* kTiming = "timing.jsonl";
inline constexpr const char* kCheckpoint = "checkpoint.safetensors";
inline constexpr const char* kPreviousCheckpoint = "checkpoint.previous.safetensors";
inline constexpr const char* kBest = "best.safetensors";
inline constexpr const char* kPartition = "partition.toml";
inline constexpr const char* kMemory = "memory.json";
inline constexpr const char* kEpochs = "epochs.csv";
inline constexpr const char* kEvaluation = "evaluation.json";
inline constexpr const char* kBestEvaluation = "best-evaluation.json";  // that of kBest
inline constexpr const char* kTrainingSheet = "training-pictures.png";
inline constexpr const char* kTestSheet = "test-pictures.png";
inline constexpr const char* kRun = "run.json";
inline constexpr const char* kPlan = "plan.json";
inline constexpr const char* kTimeline = "timeline.json";
inline constexpr const char* kChoice = "choice.json";
inline constexpr const char* kDataMap = "data-map.toml";
inline constexpr const char* kReport = "report.html";
inline constexpr const char* kPictures = "pictures";  // a folder, while the run goes on
}  // namespace run_file

struct RunFile {
  const char* name;
  bool replaced_whole;  // written as a whole, so the folder has to allow it: tried before step 1
  bool of_one_run;      // removed when a new run starts in the folder of an earlier one
};

// Logs of lines (metrics, events, timing) are cut by whoever appends to them.
inline constexpr RunFile kRunFiles[] = {
    {run_file::kCheckpoint, true, true},
    {run_file::kPreviousCheckpoint, true, true},
    {run_file::kBest, true, true},
    {run_file::kPartition, true, false},
    {run_file::kMemory, true, true},
    {run_file::kEpochs, true, true},
    {run_file::kEvaluation, true, true},
    {run_file::kBestEvaluation, true, true},
    {run_file::kTrainingSheet, false, true},
    {run_file::kTestSheet, false, true},
    {run_file::kRun, true, false},
    {run_file::kPlan, true, false},
    {run_file::kTimeline, true, true},
    {run_file::kDevices, false, true},
    {run_file::kChoice, false, true},
    {run_file::kDataMap, false, true},
};

}  // namespace tessera::engine
