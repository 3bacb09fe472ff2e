// What this process has used, and how busy the machine is.

#pragma once

#include <filesystem>
#include <optional>

namespace tessera::engine {

struct ProcessTimes {
  double user_s = 0;  // of all threads, since the process was started
  double system_s = 0;
};
[[nodiscard]] ProcessTimes process_times();

// Bytes of this process that are resident, from /proc/self/statm below `root`.
[[nodiscard]] std::optional<double> resident_now_bytes(const std::filesystem::path& root);

// How many processors of the machine were busy, whoever used them, from one look to the next.
class BusyCores {
 public:
  explicit BusyCores(std::filesystem::path root) : root_(std::move(root)) { (void)look(); }

  // Since the last look; 0 where /proc/stat does not say or no time has passed.
  [[nodiscard]] double look();

 private:
  std::filesystem::path root_;
  double busy_ = 0;  // ticks of all processors since the machine was started
  double all_ = 0;
};

}  // namespace tessera::engine
