#include "engine/power/rapl_meter.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/power/sysfs_file.h"
#include "engine/system/clock.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// More than any package takes, for a little longer than between two looks.
constexpr double kMostPackageWatts = 5000;
constexpr double kSlack_s = 0.1;

// A package's counter, which starts again from 0 after its largest value; and whenever the driver
// is loaded again, or after the machine slept.
struct Counter {
  std::filesystem::path file;
  double range_uj = 0;
  double last_uj = 0;

  // Microjoules until the counter showed `now_uj`, `seconds` after the last look; nothing where it
  // has begun anew.
  [[nodiscard]] std::optional<double> grown_uj(double now_uj, double seconds) const {
    if (now_uj >= last_uj) {
      return now_uj - last_uj;
    }
    const double wrapped = now_uj - last_uj + range_uj;
    const bool possible = wrapped >= 0 && wrapped <= 1e6 * kMostPackageWatts * (seconds + kSlack_s);
    return possible ? std::optional(wrapped) : std::nullopt;
  }
};

// "intel-rapl:0", not a part of a package ("intel-rapl:0:0") nor the same package by another way
// ("intel-rapl-mmio:0"). AMD's processors are there under this name, too.
bool is_top_zone(const std::string& name) {
  constexpr std::string_view kPrefix = "intel-rapl:";
  return name.rfind(kPrefix, 0) == 0 && name.size() > kPrefix.size() &&
         std::all_of(name.begin() + kPrefix.size(), name.end(), [](char letter) {
           return letter >= '0' && letter <= '9';
         });
}

// A zone "psys" beside the packages contains them.
bool is_package(const std::filesystem::path& zone) {
  return line_of_file(zone / "name").rfind("package", 0) == 0;
}

double counter_uj(const std::filesystem::path& file) {
  try {
    return number_of_file(file);
  } catch (const InputError& error) {
    throw InputError(fmt::format(
        "{}: run as root, or as root: chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj",
        error.what()));
  }
}

}  // namespace

std::optional<PowerMeter> find_rapl_meter(const std::filesystem::path& root) {
  std::vector<Counter> counters;
  for (const auto& zone : entries_of(root / "sys/class/powercap")) {
    if (is_top_zone(zone.filename()) && is_package(zone)) {
      const auto file = zone / "energy_uj";
      counters.push_back({file, number_of_file(zone / "max_energy_range_uj"), counter_uj(file)});
    }
  }
  if (counters.empty()) {
    return std::nullopt;
  }
  MeterDescription description;
  description.source = "rapl";
  description.scope = MeterScope::Processor;
  description.counts_joules = true;
  constexpr double kPeriod_s = 0.1;  // a look costs little, and steps of training are short
  description.period_s = kPeriod_s;
  const auto look = [counters, total_uj = 0.0, last_s = now_s()](const MeterQuery&) mutable {
    std::vector<double> now_uj;  // all or none: a failure loses nothing
    for (const Counter& counter : counters) {
      now_uj.push_back(counter_uj(counter.file));
    }
    const double time_s = now_s();
    bool restarted = false;
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const auto grown = counters[i].grown_uj(now_uj[i], time_s - last_s);
      total_uj += grown.value_or(0);
      restarted = restarted || !grown;
      counters[i].last_uj = now_uj[i];
    }
    last_s = time_s;
    return MeterValue(1e-6 * total_uj, restarted);
  };
  return PowerMeter(description, look);
}

}  // namespace tessera::engine
