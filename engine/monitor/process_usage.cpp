#include "engine/monitor/process_usage.h"

#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace tessera::engine {

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ProcessTimes process_times() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

std::optional<double> resident_now_bytes(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/statm");
  double size = 0;
  double resident = 0;
  return file >> size >> resident
             ? std::optional(resident * static_cast<double>(::sysconf(_SC_PAGESIZE)))
             : std::nullopt;
}

// Lines are "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...", then the same of each
// processor, "cpu0 ...". What a hypervisor gave to others is not busy here.
double BusyCores::look() {
  std::ifstream file(root_ / "proc/stat");
  std::string word;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  double interrupts = 0;
  double soft_interrupts = 0;
  double stolen = 0;
  if (!(file >> word >> user >> nice >> system >> idle >> waiting >> interrupts >>
        soft_interrupts >> stolen) ||
      word != "cpu") {
    return 0;
  }
  int processors = 0;
  for (std::string line; std::getline(file, line);) {
    processors += line.compare(0, 3, "cpu") == 0 ? 1 : 0;
  }
  const double busy = user + nice + system + interrupts + soft_interrupts;
  const double all = busy + idle + waiting + stolen;
  const double busy_before = std::exchange(busy_, busy);
  const double all_before = std::exchange(all_, all);
  return all > all_before ? processors * (busy - busy_before) / (all - all_before) : 0;
}

}  // namespace tessera::engine
