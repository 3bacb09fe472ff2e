#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/chart/figure.h"
#include "engine/chart/line_chart.h"
#include "engine/page/device_series.h"
#include "engine/page/sections.h"
#include "engine/page/step_series.h"
#include "engine/page/words.h"

namespace tessera::engine {

namespace {

struct DeviceChart {
  const char* id;
  const char* title;
  const char* what;  // in a sentence
  Unit unit;
  bool from_zero;
  std::vector<Point> (*series)(const RunDevice&);
};

template <double DeviceSample::*counter>
std::vector<Point> rate(const RunDevice& device) {
  return rate_of(device, [](const DeviceSample& sample) { return sample.*counter; });
}

template <double DeviceSample::*value>
std::vector<Point> values(const RunDevice& device) {
  return sampled(device, [](const DeviceSample& sample) { return sample.*value; });
}

double processor_s(const DeviceSample& sample) {
  return sample.cpu_user_s + sample.cpu_system_s;
}

std::vector<Point> processor(const RunDevice& device) {
  return rate_of(device, processor_s);
}

const DeviceChart kCharts[] = {
    {"processor", "Processor, 100 % is one core", "processor time", Unit::Share, true, processor},
    {"waiting",
     "Time waiting for messages",
     "waiting time",
     Unit::Share,
     true,
     rate<&DeviceSample::wait_s>},
    {"sent",
     "Network interface, out",
     "bytes out of the network interface",
     Unit::BytesPerSecond,
     true,
     rate<&DeviceSample::tx_bytes>},
    {"received",
     "Network interface, in",
     "bytes into the network interface",
     Unit::BytesPerSecond,
     true,
     rate<&DeviceSample::rx_bytes>},
    {"resident", "Resident memory", "memory", Unit::Bytes, true, values<&DeviceSample::rss_bytes>},
    {"temperature",
     "Temperature",
     "temperature",
     Unit::Celsius,
     false,
     values<&DeviceSample::temperature_c>},
    {"clock", "Processor clock", "clock", Unit::Hertz, true, values<&DeviceSample::clock_hz>},
    {"power", "Power", "power", Unit::Watt, true, values<&DeviceSample::power_w>}};

std::string chart_html(const RunData& run, const DeviceChart& which) {
  LineChart chart;
  chart.id = which.id;
  chart.title = which.title;
  chart.x_unit = Unit::Seconds;
  chart.y_unit = which.unit;
  chart.from_zero = which.from_zero;
  chart.marks = time_marks(run);
  if (which.unit == Unit::Bytes && run.info && known(run.info->memory_limit_bytes)) {
    chart.levels.push_back({run.info->memory_limit_bytes, "limit"});
  }
  add_ranks(chart, run, which.series);
  return line_chart_html(chart);
}

// Whether all there is to show is 0, such as the messages that one rank waits for.
bool is_idle(const RunData& run, const DeviceChart& which) {
  std::size_t points = 0;
  for (const auto& [rank, device] : run.devices) {
    for (const Point& point : which.series(device)) {
      points += known(point.y) ? 1 : 0;
      if (known(point.y) && point.y != 0) {
        return false;
      }
    }
  }
  return points > 0;
}

// The rise of a counter over the run; what it counted before it began anew is part of it.
double rise_of(const RunDevice& device, const SampleValue& counter) {
  double sum = 0;
  double before = kUnknown;
  bool any = false;
  for (const DeviceSample& sample : device.samples) {
    const double now = counter(sample);
    if (known(now)) {
      any = true;
      sum += known(before) && now >= before ? now - before : now;
      before = now;
    }
  }
  return any ? sum : kUnknown;
}

// Seconds in which the device was slowed down, by heat or for lack of power; NaN where that is not
// known.
double throttled_s(const RunDevice& device) {
  double sum = kUnknown;
  double before_s = kUnknown;
  for (const DeviceSample& sample : device.samples) {
    if (known(sample.throttled)) {
      const double since_s = known(before_s) ? sample.t_s - before_s : 0;
      sum = (known(sum) ? sum : 0) + (sample.throttled != 0 ? since_s : 0);
    }
    before_s = sample.t_s;
  }
  return sum;
}

double highest(const RunDevice& device, double DeviceSample::*value) {
  double most = kUnknown;
  for (const DeviceSample& sample : device.samples) {
    if (known(sample.*value) && !(most >= sample.*value)) {
      most = sample.*value;
    }
  }
  return most;
}

Table device_table(const RunData& run) {
  Table table{{"device",
               "samples",
               "processor time",
               "waiting",
               "interface out",
               "interface in",
               "most memory",
               "highest temperature",
               "throttled",
               "energy"},
              {}};
  for (const auto& [rank, device] : run.devices) {
    table.rows.push_back(
        {rank_name(run, rank),
         fmt::format("{}", device.samples.size()),
         duration_text(rise_of(device, processor_s)),
         duration_text(rise_of(device, [](const auto& sample) { return sample.wait_s; })),
         quantity_text(rise_of(device, [](const auto& sample) { return sample.tx_bytes; }),
                       Unit::Bytes),
         quantity_text(rise_of(device, [](const auto& sample) { return sample.rx_bytes; }),
                       Unit::Bytes),
         quantity_text(highest(device, &DeviceSample::rss_bytes), Unit::Bytes),
         quantity_text(highest(device, &DeviceSample::temperature_c), Unit::Celsius),
         duration_text(throttled_s(device)),
         quantity_text(device.energy_j, Unit::Joule)});
  }
  return table;
}

// What the bytes of interfaces are, beside those of messages.
std::string interface_note(const RunData& run) {
  const bool any = std::any_of(run.devices.begin(), run.devices.end(), [](const auto& device) {
    return std::any_of(device.second.samples.begin(),
                       device.second.samples.end(),
                       [](const auto& s) { return known(s.tx_bytes); });
  });
  return any ? "<p class=\"note\">Bytes of interfaces are those of the whole machine, with what "
               "the "
               "network adds to messages. Messages between ranks on one machine need not cross an "
               "interface; all messages are counted above.</p>\n"
             : "";
}

}  // namespace

PageSection devices_section(const RunData& run) {
  PageSection section{.id = "devices", .title = "Devices over time"};
  if (run.devices.empty()) {
    section.missing =
        "Processor, network, temperature and power over time: devices.jsonl is missing or empty.";
    return section;
  }
  std::string charts;
  std::vector<std::string> unknown;
  for (const DeviceChart& chart : kCharts) {
    if (is_idle(run, chart)) {
      continue;
    }
    const std::string html = chart_html(run, chart);
    charts += html;
    if (html.empty()) {
      unknown.emplace_back(chart.what);
    }
  }
  section.html = "<div class=\"grid-of-2\">\n" + charts + "</div>\n<div class=\"scroll\">" +
                 table_html(device_table(run)) + "</div>\n" + interface_note(run);
  if (!unknown.empty()) {
    section.missing = fmt::format("Not known of these devices: {}.", fmt::join(unknown, ", "));
  }
  return section;
}

}  // namespace tessera::engine
