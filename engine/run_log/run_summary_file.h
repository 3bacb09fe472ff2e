// DIR/run.json while a run is going. Rank 0 alone has it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "engine/run_files/run_summary.h"

namespace tessera::engine {

class RunSummaryFile {
 public:
  // Writes that the run is going. Where it `goes_on` in its own folder, its first start is kept.
  // Throws InputError.
  void begin(const std::filesystem::path& path, RunSummary summary, bool goes_on);

  // Writes what is predicted for the steps to come. Throws InputError.
  void predict(const std::optional<double>& step_s);
  // To be written with how it ends.
  void set_sent(SentMessages sent);
  void set_cache(std::optional<PictureCacheUse> cache);

  // Writes how it ended: "finished", "interrupted" or "failed", why, and the exit code that rank 0
  // ends with, which whoever started it may not get to see. The first end counts; any thread may
  // call it. Where the file cannot be written it stays as it was. Returns whether it is the first
  // end of a run that had begun.
  bool end(const std::string& state, const std::string& reason, int exit_code);

 private:
  std::timed_mutex mutex_;
  std::filesystem::path path_;  // empty: not begun
  RunSummary summary_;
  SentMessages sent_ = {};
  std::int64_t written_before_ = 0;  // bytes of this process, when the run began
  double begun_s_ = 0;
  bool ended_ = false;
};

}  // namespace tessera::engine
