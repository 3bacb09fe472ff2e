// run.json: what was started, and how it is.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run_files/unknown.h"
#include "partitioner/base/region.h"
#include "partitioner/base/training_figures.h"

namespace tessera::engine {

struct RunRank {
  int rank = 0;
  std::string host = {};
  int threads = 0;
};

// Where pictures are kept once they are decoded, of all ranks.
struct PictureCacheUse {
  std::string place = {};     // "memory", a folder or "off"
  double bytes = kUnknown;    // of reduced pictures, known when the run is finished, as the rest
  double kept = kUnknown;     // pictures that were read and were there, decoded
  double decoded = kUnknown;  // those that were not
};

// Texts are as the user gave them, any bytes: printable() them.
struct RunSummary {
  std::string state = {};   // "running", "finished", "interrupted" or "failed"
  std::string reason = {};  // of how it ended, a sentence; empty: nothing to say
  std::optional<int> exit_code = {};
  std::string started = {};  // UTC, "2026-11-26T07:10:20Z"; of a resumed run, its first start
  std::string ended = {};    // empty while it is running
  std::string version = {};
  std::string model = {};  // its path
  std::string data = {};   // likewise
  std::string command = {};
  Index first_step = 0;   // of what was started; kept from an earlier start in the same folder
  Index last_step = 0;    // that it is to reach
  Index epoch_steps = 0;  // of each epoch; 0: unknown
  Index batch = 0;        // images of a step
  std::uint64_t seed = 0;
  Index augment_variants = 0;           // of each picture; 0: another one in each epoch
  Index replicas = 0;                   // 0: unknown
  std::string sync = {};                // how these are synchronised
  std::string gradient_precision = {};  // how gradients travel
  bool exact = true;
  std::vector<std::string> inexact = {};  // why training is not what one device computes
  Index training_pictures = 0;
  Index testing_pictures = 0;
  std::vector<std::string> class_names = {};
  std::vector<RunRank> ranks = {};
  double predicted_step_s = kUnknown;    // where there is a profile of the cluster
  double memory_limit_bytes = kUnknown;  // of each rank, where one was given
  // Since the run was last started, once it has ended: messages, and what rank 0 has written.
  double sent_bytes = kUnknown;
  std::vector<double> sent_bytes_by_rank = {};
  Index sent_steps = 0;
  double written_bytes = kUnknown;
  double written_s = kUnknown;
  std::optional<PictureCacheUse> cache = {};  // nothing: unknown, or nothing has to be decoded

  [[nodiscard]] SentMessages sent() const { return {sent_steps, sent_bytes_by_rank}; }

  // How many steps an epoch has, which need not be a whole number; 0: unknown.
  [[nodiscard]] double steps_of_epoch() const {
    return training_pictures > 0 && batch > 0
               ? static_cast<double>(training_pictures) / static_cast<double>(batch)
               : static_cast<double>(epoch_steps);
  }
};

// The whole file.
[[nodiscard]] std::string text_of(const RunSummary& summary);

// Nothing where the text is not what the file should hold.
[[nodiscard]] std::optional<RunSummary> run_summary(std::string_view text);
[[nodiscard]] std::optional<RunSummary> read_run_summary(const std::filesystem::path& file);

// "running", "finished", "interrupted" or "failed", as run.json of this folder has it; empty where
// that is missing or damaged.
[[nodiscard]] std::string state_of_run(const std::filesystem::path& folder);

}  // namespace tessera::engine
