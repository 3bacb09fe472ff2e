#include "engine/cli/stall_report.h"

#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/cli/messages.h"
#include "engine/cli/process_end.h"
#include "engine/cli/started_command.h"
#include "engine/processes/launcher.h"
#include "engine/supervisor/agent_line.h"
#include "partitioner/base/printable.h"

namespace tessera::engine {

std::string LastCheckpoint::advice(const Stall& stall) const {
  const std::lock_guard lock(mutex_);
  if (file_.empty()) {
    return "there is no checkpoint yet: start again without the devices that do not answer";
  }
  if (!command_of_supervisor().empty()) {
    return "`tessera run` goes on from the last finished step";
  }
  const std::string last =
      fmt::format("the last checkpoint is {}, after step {}", printable(file_), step_);
  const std::string resume = advice_to_resume(file_);
  if (stall.silent.empty()) {
    return fmt::format("{}; to continue (`tessera run` does so by itself): {}", last, resume);
  }
  if (uses_data_map_) {
    return fmt::format(
        "{}; to continue with the devices that are left, make a data map of theirs with `tessera "
        "balance`: then {} --data-map FILE",
        last,
        resume);
  }
  std::vector<std::string> hosts;
  for (const int rank : stall.living) {
    hosts.push_back(stall.hosts[static_cast<std::size_t>(rank)]);
  }
  return fmt::format(
      "{}; to continue with the devices that are left (`tessera run` does so by itself): with "
      "mpiexec.mpich -n {} -hosts {}, {}, and --partition auto instead of what says how to cut",
      last,
      hosts.size(),
      fmt::join(hosts, ","),
      resume);
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
