#include "engine/supervisor/work_watch.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

namespace tessera::engine {

namespace {

double clock_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// By system calls, and from disks, also where pages of files are mapped.
Index bytes_so_far() {
  std::ifstream file("/proc/self/io");
  Index bytes = file ? 0 : kUnknownBytes;
  for (std::string line; std::getline(file, line);) {
    for (const char* name : {"rchar: ", "wchar: ", "read_bytes: "}) {
      if (line.rfind(name, 0) == 0) {
        bytes += std::atoll(line.c_str() + std::string(name).size());
      }
    }
  }
  return bytes;
}

}  // namespace

WorkSoFar work_so_far(const WaitsOfRank& waits) {
  return {clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID),
          bytes_so_far(),
          waits};
}

SignOfWork WorkWatch::add(const WorkSoFar& now, double now_s) {
  constexpr double kProcessor_s = 0.5;
  constexpr Index kBytes = Index{256} << 10;
  constexpr double kStuck_s = 10;
  constexpr double kBetween_s = 1;
  const bool waited = now.waits.waiting || before_.waits.waiting;
  processor_s_ += waited ? 0 : now.processor_s - before_.processor_s;
  bytes_ += now.bytes - before_.bytes;
  works_ = works_ || now.waits.ended != before_.waits.ended || processor_s_ >= kProcessor_s ||
           bytes_ >= kBytes || now.bytes == kUnknownBytes;
  before_ = now;
  if (works_ || waited) {
    stuck_since_s_ = now_s;
  }
  if (works_ && now_s - worked_s_ >= kBetween_s) {
    works_ = false;
    processor_s_ = 0;
    bytes_ = 0;
    worked_s_ = now_s;
    return SignOfWork::Works;
  }
  if (now_s - stuck_since_s_ >= kStuck_s) {
    stuck_since_s_ = now_s;
    return SignOfWork::Stuck;
  }
  return SignOfWork::None;
}

}  // namespace tessera::engine
