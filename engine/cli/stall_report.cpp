#include "engine/cli/stall_report.h"

#include <cstdio>
#include <fmt/format.h>

#include "engine/cli/launcher.h"
#include "engine/cli/messages.h"
#include "engine/cli/process_end.h"
#include "engine/cli/resume_command.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/shell_word.h"

namespace tessera::engine {

std::string LastCheckpoint::advice(const Stall& stall) const {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) {
    return "there is no checkpoint yet: start again without the devices that do not answer";
  }
  const CommandWords started = started_command();
  if (!started.supervisor.empty()) {
    return "`tessera run` goes on from the last finished step";
  }
  if (!stall.silent.empty() && uses_data_map(started)) {
    return fmt::format(
        "the last checkpoint is {}, after step {}; to continue with the devices that "
        "are left, make a data map of theirs with `tessera balance`, and give it with "
        "--data-map and --resume {}",
        printable(file_),
        step_,
        shell_word(printable(file_)));
  }
  Words hosts;
  for (const int rank : stall.living) {
    hosts.push_back(stall.hosts[static_cast<std::size_t>(rank)]);
  }
  return fmt::format(
      "the last checkpoint is {}, after step {}; to continue with {} (`tessera run` does so by "
      "itself): {}",
      printable(file_),
      step_,
      stall.silent.empty() ? "the same devices" : "the devices that are left",
      command_to_resume_on(hosts, started, file_));
}

Watchdog watch(const Communicator& communicator, Index limit_s, const LastCheckpoint* checkpoint) {
  const double limit = limit_s > 0 ? static_cast<double>(limit_s) : kUsualStallTimeout_s;
  const auto report = [checkpoint](const Stall& stall) {
    fmt::print(stderr, "tessera: {}\n", printable(describe(stall)));
    if (checkpoint != nullptr) {
      fmt::print(stderr, "tessera: {}\n", checkpoint->advice(stall));
      checkpoint->tell_of_stall(describe(stall));
    }
  };
  const auto end = [report, checkpoint, launcher = launcher_process()](const Stall& stall) {
    if (checkpoint != nullptr) {
      checkpoint->tell_of_silence(stall.silent);
    }
    end_stalled(stall, launcher, [&] { report(stall); });
  };
  const auto back = [checkpoint](const std::string& what) {
    print_warning(what);
    if (checkpoint != nullptr) {
      checkpoint->tell_of_return(what);
    }
  };
  return Watchdog(communicator, limit, end, back);
}

}  // namespace tessera::engine
