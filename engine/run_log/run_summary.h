// DIR/run.json of a run: what was started, and how it is. Rank 0 alone has it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/base/region.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

struct RunSummary {
  struct Rank {
    std::string host;
    int threads = 0;
  };

  // Where pictures are kept once they are decoded.
  struct Cache {
    std::string place;  // "memory", a folder or "off"; empty: nothing has to be decoded
    // Known when the run is finished; of all ranks.
    Index bytes = 0;    // of reduced pictures
    Index kept = 0;     // pictures that were read and were there, decoded
    Index decoded = 0;  // those that were not
  };

  std::string version;
  std::string model;
  std::string data;
  std::string command;
  Index first_step = 1;  // of what was started; kept from an earlier start in the same folder
  Index last_step = 0;
  Index epoch_steps = 0;
  Index batch = 0;
  std::uint64_t seed = 0;
  int replicas = 1;
  std::string sync;                  // how these are synchronised
  std::string gradient_precision;    // how gradients travel
  std::vector<std::string> inexact;  // why training is not what one device computes; empty: it is
  Index training_pictures = 0;
  Index testing_pictures = 0;
  std::vector<std::string> class_names;
  std::vector<Rank> ranks;
  std::optional<double> predicted_step_s;
  std::optional<Index> memory_limit_bytes;
  SentMessages sent = {};  // since the run was last started; known when it is finished
  Cache cache = {};
};

class RunSummaryFile {
 public:
  // Writes that the run is going. Where it `goes_on` in its own folder, its first start is kept.
  // Throws InputError.
  void begin(const std::filesystem::path& path, RunSummary summary, bool goes_on);

  // Writes what is predicted for the steps to come. Throws InputError.
  void predict(const std::optional<double>& step_s);
  // To be written with how it ends.
  void set_sent(SentMessages sent);
  void set_cache(RunSummary::Cache cache);

  // Writes how it ended: "finished", "interrupted" or "failed", why, and the exit code that rank 0
  // ends with, which whoever started it may not get to see. The first end counts; any thread may
  // call it. Where the file cannot be written it stays as it was. Returns whether it is the first
  // end of a run that had begun.
  bool end(const std::string& state, const std::string& reason, int exit_code);

 private:
  [[nodiscard]] std::string text(const std::string& state,
                                 const std::string& reason,
                                 std::optional<int> exit_code) const;

  std::timed_mutex mutex_;
  std::filesystem::path path_;  // empty: not begun
  RunSummary summary_;
  std::string started_;              // UTC
  std::int64_t written_before_ = 0;  // bytes of this process, when the run began
  double begun_s_ = 0;
  bool ended_ = false;
};

}  // namespace tessera::engine
