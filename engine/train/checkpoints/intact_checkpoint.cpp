#include "engine/train/checkpoints/intact_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <system_error>

#include "engine/run_files/names.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace fs = std::filesystem;

namespace {

constexpr const char* kCheckpointNames[] = {run_file::kCheckpoint, run_file::kPreviousCheckpoint};

bool exists_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(fs::symlink_status(file, error));
}

}  // namespace

IntactCheckpoint newest_intact_checkpoint(const fs::path& run_folder) {
  IntactCheckpoint newest;
  std::vector<fs::path> absent;
  for (const char* name : kCheckpointNames) {
    const fs::path file = run_folder / name;
    if (!exists_there(file)) {
      absent.push_back(file);
      continue;
    }
    try {
      const Index step = expect_intact_checkpoint(file);
      if (newest.file.empty() || step > newest.step) {
        newest.file = file;
        newest.step = step;
      }
    } catch (const InputError& error) {
      newest.refused.emplace_back(error.what());
    }
  }
  if (newest.file.empty()) {
    throw InputError(run_folder.string(),
                     0,
                     newest.refused.empty() ? fmt::format("has no {}", run_file::kCheckpoint)
                                            : fmt::format("has no intact checkpoint: {}",
                                                          fmt::join(newest.refused, "; ")));
  }
  if (!absent.empty() && absent.front().filename() == run_file::kCheckpoint) {
    newest.refused.push_back(absent.front().string() + ": is not there");
  }
  return newest;
}

std::string with_intact_other(const std::string& problem, const fs::path& damaged) {
  for (const char* name : kCheckpointNames) {
    const fs::path other = damaged.parent_path() / name;
    if (damaged.filename() == name || !exists_there(other)) {
      continue;
    }
    try {
      const Index step = expect_intact_checkpoint(other);
      return fmt::format(
          "{}; {}, after step {}, is intact: resume from it", problem, other.string(), step);
    } catch (const InputError&) {  // no better
    }
  }
  return problem;
}

}  // namespace tessera::engine
