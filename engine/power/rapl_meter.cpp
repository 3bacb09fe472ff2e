#include "engine/power/rapl_meter.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/power/sysfs_file.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

// A package's counter, which starts again from 0 after its largest value.
struct Counter {
  std::filesystem::path file;
  double range_uj = 0;
  double last_uj = 0;
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
  return PowerMeter(description, [counters, total_uj = 0.0](const MeterQuery&) mutable {
    std::vector<double> now_uj;  // all or none: a failure loses nothing
    for (const Counter& counter : counters) {
      now_uj.push_back(counter_uj(counter.file));
    }
    for (std::size_t i = 0; i < counters.size(); ++i) {
      const double grown = now_uj[i] - counters[i].last_uj;
      total_uj += grown < 0 ? grown + counters[i].range_uj : grown;
      counters[i].last_uj = now_uj[i];
    }
    return 1e-6 * total_uj;
  });
}

}  // namespace tessera::engine
