// What limits this process, as the kernel says it: processor time by quota, memory by `ulimit`, and
// what a network interface has negotiated. `root` is the folder that /proc and /sys lie in.

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "partitioner/base/region.h"

namespace tessera::engine {

// Periods in which a control group of this process wanted processor time, and those of them in
// which its quota was used up. Since the group was made; the difference of two looks is what
// counts.
struct QuotaPeriods {
  Index periods = 0;
  Index throttled = 0;

  // Of the periods since `before`; 0 where there was none.
  [[nodiscard]] double throttled_share(const QuotaPeriods& before) const;
};

// Of the group that was throttled most, of this process's and those that it lies in, of version 1
// or 2; nothing where none has a quota.
[[nodiscard]] std::optional<QuotaPeriods> quota_periods(const std::filesystem::path& root = "/");

// What `ulimit` lets this process take in all, its own memory included; nothing where it does not
// say.
[[nodiscard]] std::optional<Index> memory_allowed_by_ulimit();

// How many threads the system allows: "`ulimit -u` allows its user 100 processes and threads, and
// its control group 30 (pids.max)". Empty where nothing limits them.
[[nodiscard]] std::string thread_limits(const std::filesystem::path& root = "/");

// What `ulimit` allows a process less of than one may need that trains: "`ulimit -n` allows 20 open
// files, `ulimit -f` files of 1 MiB". Empty where that is nothing.
[[nodiscard]] std::string tight_limits();

// Throws InputError that names them where this program could not even say what is wrong.
void expect_enough_for_any_program();

// Throws InputError that names those limits where this process cannot have `count` threads at a
// time: OpenMP would end it without a word of where. Starts them, which takes a moment.
void expect_startable_threads(int count);

// Bits per second that an interface has negotiated; nothing where it does not say, as Wi-Fi.
[[nodiscard]] std::optional<double> negotiated_bits_per_s(const std::string& interface,
                                                          const std::filesystem::path& root = "/");

}  // namespace tessera::engine
