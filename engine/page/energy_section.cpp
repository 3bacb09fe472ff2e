#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "engine/chart/bar_chart.h"
#include "engine/chart/line_chart.h"
#include "engine/page/device_series.h"
#include "engine/page/sections.h"
#include "engine/page/step_series.h"
#include "engine/page/words.h"

namespace tessera::engine {

namespace {

BarChart by_device(const RunData& run) {
  BarChart chart;
  chart.id = "energy-by-device";
  chart.title = "Energy by device";
  chart.unit = Unit::Joule;
  chart.parts = {{"energy", 2}};
  for (const auto& [rank, device] : run.devices) {
    if (known(device.energy_j)) {
      chart.groups.push_back({rank_name(run, rank), {{"", {device.energy_j}}}});
    }
  }
  return chart;
}

LineChart over_time(const RunData& run) {
  LineChart chart;
  chart.id = "energy-over-time";
  chart.title = "Energy since the start";
  chart.x_unit = Unit::Seconds;
  chart.y_unit = Unit::Joule;
  chart.from_zero = true;
  chart.marks = time_marks(run);
  add_ranks(chart, run, energy_of);
  return chart;
}

LineChart by_epoch(const RunData& run) {
  LineChart chart;
  chart.id = "energy-by-epoch";
  chart.title = "Energy of each epoch, all devices";
  chart.x_name = "step";
  chart.y_unit = Unit::Joule;
  chart.from_zero = true;
  chart.series.push_back(
      {"", evaluation_points(run, &EvaluationRecord::energy_j), 2, LineLook::Dots});
  return chart;
}

std::string sources(const RunData& run) {
  std::set<std::string> names;
  for (const auto& [rank, device] : run.devices) {
    if (!device.power_source.empty()) {
      names.insert(device.power_source);
    }
  }
  return fmt::format("{}", fmt::join(names, "; "));
}

}  // namespace

PageSection energy_section(const RunData& run) {
  PageSection section{.id = "energy", .title = "Energy"};
  BarChart devices = by_device(run);
  if (const std::string names = sources(run); !names.empty()) {
    devices.note = "Power by: " + names + ".";
    if (run.faults.faults > 0) {
      devices.note +=
          " While the run stood still after a fault, devices are taken to have needed their last "
          "power, for a minute at most.";
    }
  }
  const std::string charts =
      bar_chart_html(devices) + line_chart_html(over_time(run)) + line_chart_html(by_epoch(run));
  if (charts.empty()) {
    section.missing = "Energy: no device has a power meter (train --meter).";
    return section;
  }
  section.html = "<div class=\"grid-of-2\">\n" + charts + "</div>\n";
  return section;
}

}  // namespace tessera::engine
