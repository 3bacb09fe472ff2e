#include "engine/system/limits.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <latch>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <vector>

#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

namespace fs = std::filesystem;

std::optional<QuotaPeriods> periods_of_group(const fs::path& folder) {
  std::ifstream file(folder / "cpu.stat");
  QuotaPeriods found;
  std::string word;
  Index value = 0;
  while (file >> word >> value) {
    if (word == "nr_periods") {
      found.periods = value;
    } else if (word == "nr_throttled") {
      found.throttled = value;
    }
  }
  return found.periods > 0 ? std::optional(found) : std::nullopt;
}

// The folders of the control groups that limit what `controller` controls for this process. Lines
// of /proc/self/cgroup are ID:CONTROLLERS:PATH; version 2 has the one without controllers. In a
// container the path may not be there: then the top of what it sees is its group.
template <class Look>
void for_each_group(const fs::path& root, const std::string& controller, Look look) {
  std::ifstream file(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
      continue;
    }
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const bool version1 = controllers.find("," + controller + ",") != std::string::npos;
    if (!version1 && controllers != ",,") {
      continue;
    }
    fs::path folder = root / "sys/fs/cgroup";
    folder /= version1 ? controller : "";
    look(folder);
    for (const fs::path& part : fs::path(line.substr(second + 1)).relative_path()) {
      folder /= part;
      look(folder);
    }
  }
}

}  // namespace

double QuotaPeriods::throttled_share(const QuotaPeriods& before) const {
  const Index passed = periods - before.periods;
  return passed > 0
             ? static_cast<double>(throttled - before.throttled) / static_cast<double>(passed)
             : 0;
}

std::optional<QuotaPeriods> quota_periods(const fs::path& root) {
  std::optional<QuotaPeriods> most;
  for_each_group(root, "cpu", [&most](const fs::path& folder) {
    const auto found = periods_of_group(folder);
    most = found && (!most || found->throttled > most->throttled) ? found : most;
  });
  return most;
}

std::optional<Index> memory_allowed_by_ulimit() {
  std::optional<Index> least;
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      const auto bytes = static_cast<Index>(limit.rlim_cur);
      least = std::min(least.value_or(bytes), bytes);
    }
  }
  return least;
}

std::string thread_limits(const fs::path& root) {
  std::string text;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text = fmt::format("`ulimit -u` allows its user {} processes and threads", limit.rlim_cur);
  }
  std::optional<Index> least;
  for_each_group(root, "pids", [&least](const fs::path& folder) {
    std::ifstream file(folder / "pids.max");  // "max": no limit
    if (Index value = 0; file >> value) {
      least = std::min(least.value_or(value), value);
    }
  });
  if (least) {
    text += fmt::format("{}its control group{} {} (pids.max)",
                        text.empty() ? "" : ", and ",
                        text.empty() ? " allows" : "",
                        *least);
  }
  return text;
}

void expect_startable_threads(int count) {
  std::latch end(1);
  std::vector<std::jthread> threads;
  std::optional<std::string> problem;
  try {
    while (std::ssize(threads) < count - 1) {
      threads.emplace_back([&end] { end.wait(); });
    }
  } catch (const std::system_error& error) {
    const std::string limits = thread_limits();
    problem = fmt::format("{} of {} threads can be started ({}){}{}",
                          std::ssize(threads) + 1,
                          count,
                          error.code().message(),
                          limits.empty() ? "" : ": ",
                          limits);
  }
  end.count_down();
  threads.clear();
  if (problem) {
    throw InputError(*problem);
  }
}

std::optional<double> negotiated_bits_per_s(const std::string& interface, const fs::path& root) {
  std::ifstream file(root / "sys/class/net" / interface / "speed");
  double megabits = 0;
  return file >> megabits && megabits > 0 ? std::optional(1e6 * megabits) : std::nullopt;
}

}  // namespace tessera::engine
