#include <chrono>
#include <filesystem>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/cli/commands.h"
#include "engine/files/atomic_file.h"
#include "engine/page/page.h"
#include "engine/run_files/names.h"
#include "engine/run_view/run_reader.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/path_kinds.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

namespace {

std::string now_text() {
  return fmt::format(
      "{:%Y-%m-%d %H:%M} UTC",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// "; did you mean runs/a?": folders in this one that hold runs.
std::string runs_below(const std::filesystem::path& folder) {
  std::string found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_there(entry->path() / run_file::kRun)) {
      found += (found.empty() ? "; did you mean " : " or ") + entry->path().string();
    }
  }
  return found.empty() ? ": give the one that `train` was given with --run" : found + "?";
}

}  // namespace

void run_report(const ReportCommand& command) {
  const RunData run = read_run(command.run);
  if (run.state == RunState::Empty && run.damaged.empty()) {
    throw InputError(command.run, 0, "there is no run in this folder" + runs_below(command.run));
  }
  const std::filesystem::path target = command.out.empty()
                                           ? std::filesystem::path(command.run) / run_file::kReport
                                           : std::filesystem::path(command.out);
  write_atomically(target,
                   run_page(run, {.title = command.title, .as_of = now_text()}),
                   command.out.empty() ? Links::Replace : Links::Follow);
  fmt::print("{} ({})\n", printable(target.string()), name_of(run.state));
}

}  // namespace tessera::engine
