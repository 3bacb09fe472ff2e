#include "engine/system/limits.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <latch>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/system/control_groups.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/quantities.h"

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

std::string tight_limits() {
  struct Limit {
    decltype(RLIMIT_AS) kind;
    const char* option;
    const char* what;
    bool is_bytes;
    rlim_t enough;
  };
  constexpr rlim_t kEnoughFiles = 256;
  constexpr rlim_t kEnoughStack = rlim_t{1} << 20U;
  constexpr std::array<Limit, 6> kLimits{
      {{RLIMIT_NOFILE, "-n", "open files", false, kEnoughFiles},
       {RLIMIT_STACK, "-s", "of stack", true, kEnoughStack},
       {RLIMIT_AS, "-v", "of addresses", true, RLIM_INFINITY},
       {RLIMIT_DATA, "-d", "of data", true, RLIM_INFINITY},
       {RLIMIT_FSIZE, "-f", "in a file", true, RLIM_INFINITY},
       {RLIMIT_CPU, "-t", "s of a processor", false, RLIM_INFINITY}}};
  std::vector<std::string> found;
  for (const Limit& one : kLimits) {
    rlimit limit{};
    if (::getrlimit(one.kind, &limit) == 0 && limit.rlim_cur < one.enough) {
      const auto value = static_cast<Index>(limit.rlim_cur);
      found.push_back(fmt::format("`ulimit {}` allows {} {}",
                                  one.option,
                                  one.is_bytes ? readable_bytes(value) : fmt::format("{}", value),
                                  one.what));
    }
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

void expect_enough_for_any_program() {
  struct Least {
    decltype(RLIMIT_AS) kind;
    rlim_t value;
    const char* text;
  };
  constexpr std::array<Least, 2> kLeast{
      {{RLIMIT_NOFILE, 32, "at least 32 open files (ulimit -n)"},
       {RLIMIT_STACK, rlim_t{128} << 10U, "at least 128 KiB of stack (ulimit -s)"}}};
  for (const Least& one : kLeast) {
    rlimit limit{};
    if (::getrlimit(one.kind, &limit) == 0 && limit.rlim_cur < one.value) {
      throw InputError(fmt::format("{}: expected {}", tight_limits(), one.text));
    }
  }
}

std::string thread_limits(const fs::path& root) {
  std::string text = tight_limits();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    text += fmt::format("{}`ulimit -u` allows its user {} processes and threads",
                        text.empty() ? "" : ", ",
                        limit.rlim_cur);
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
