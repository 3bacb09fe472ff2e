#include "engine/run_view/device_rows.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <string>

#include "partitioner/base/quantities.h"
#include "partitioner/base/utf8.h"

namespace tessera::engine {

namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kMegabyte = 1e6;
constexpr double kSilent_s = 5;  // samples come every second
constexpr double kWarm_c = 70;
constexpr double kHot_c = 80;  // where a Raspberry Pi slows down
constexpr double kFull = 0.9;  // of memory
constexpr std::size_t kMostHost = 12;

struct BarPart {
  const char* name;
  const char* unicode;
  const char* ascii;
  Ink ink;
  std::function<double(const StepTiming&)> seconds;
};
const std::vector<BarPart>& bar_parts() {
  static const std::vector<BarPart> parts = {
      {"computing", "█", "#", Ink::Computing, [](const auto& time) { return time.computing_s(); }},
      {"exchanging", "▓", "=", Ink::Exchanging, [](const auto& time) { return time.exchanging_s; }},
      {"waiting", "░", ".", Ink::Waiting, [](const auto& time) { return time.waiting_s; }},
      {"loading", "▒", "%", Ink::Loading, [](const auto& time) { return time.loading_s; }}};
  return parts;
}

struct Entry {
  std::string text;
  Ink ink = Ink::Plain;
};

struct DeviceColumn {
  const char* title;
  int importance;  // the least one goes first
  bool left;       // aligned
  std::function<Entry(const DeviceNow&, const ScreenStyle&)> entry;
  int width = 0;
};

std::string number_or_nothing(double number, const char* format) {
  return known(number) ? fmt::format(fmt::runtime(format), number) : "";
}

Entry memory_entry(const DeviceNow& device, const ScreenStyle& /*style*/) {
  if (!known(device.rss_bytes)) {
    return {};
  }
  const std::string used = fmt::format("{:.0f}", device.rss_bytes / kMebibyte);
  if (!known(device.limit_bytes)) {
    return {used};
  }
  return {fmt::format("{}/{:.0f}", used, device.limit_bytes / kMebibyte),
          device.rss_bytes > kFull * device.limit_bytes ? Ink::Warn : Ink::Plain};
}

Entry temperature_entry(const DeviceNow& device, const ScreenStyle& /*style*/) {
  if (!known(device.temperature_c)) {
    return {};
  }
  Ink ink = device.temperature_c >= kWarm_c ? Ink::Warn : Ink::Plain;
  ink = device.temperature_c >= kHot_c || device.throttled ? Ink::Bad : ink;
  return {fmt::format("{:.0f}{}", device.temperature_c, device.throttled ? "!" : ""), ink};
}

Entry network_entry(const DeviceNow& device, const ScreenStyle& /*style*/) {
  const auto rate = [](double bytes_per_s) {
    return bytes_per_s < 10 * kMegabyte ? fmt::format("{:.1f}", bytes_per_s / kMegabyte)
                                        : fmt::format("{:.0f}", bytes_per_s / kMegabyte);
  };
  if (!known(device.received_bytes_per_s) || !known(device.sent_bytes_per_s)) {
    return {};
  }
  return {fmt::format("{}/{}", rate(device.received_bytes_per_s), rate(device.sent_bytes_per_s))};
}

Entry step_entry(const DeviceNow& device, const ScreenStyle& /*style*/) {
  if (device.silent_s > kSilent_s) {
    return {fmt::format("silent {:.0f} s", device.silent_s), Ink::Bad};
  }
  const double step_s = device.timing ? device.timing->step_s : kUnknown;
  return {known(step_s) ? readable_seconds(step_s) : ""};
}

std::vector<DeviceColumn> all_columns() {
  const auto plain = [](auto text) {
    return [text](const DeviceNow& device, const ScreenStyle& /*style*/) {
      return Entry{text(device)};
    };
  };
  return {{"rank", 9, false, plain([](const DeviceNow& device) {
             return std::to_string(device.rank);
           })},
          {"host", 5, true, plain([](const DeviceNow& device) {
             return std::string(utf8_prefix(device.host, kMostHost));
           })},
          {"tile", 4, true, plain([](const DeviceNow& device) { return device.tile; })},
          {"step", 8, false, step_entry},
          {"MiB", 7, false, memory_entry},
          {"C", 6, false, temperature_entry},
          {"cores", 3, false, plain([](const DeviceNow& device) {
             return number_or_nothing(device.cores, "{:.1f}");
           })},
          {"MB/s", 1, false, network_entry},
          {"W", 2, false, plain([](const DeviceNow& device) {
             return number_or_nothing(device.power_w, "{:.1f}");
           })}};
}

// Columns of which something is known, as wide as they must be, and as many as fit beside a bar.
std::vector<DeviceColumn> fitting_columns(const std::vector<DeviceNow>& devices,
                                          const ScreenStyle& style,
                                          int columns) {
  constexpr int kLeastBar = 14;
  std::vector<DeviceColumn> fitting;
  for (DeviceColumn& column : all_columns()) {
    for (const DeviceNow& device : devices) {
      column.width = std::max(column.width, screen_width(column.entry(device, style).text));
    }
    if (column.width > 0) {
      column.width = std::max(column.width, screen_width(column.title));
      fitting.push_back(std::move(column));
    }
  }
  const auto total = [&] {
    int sum = kLeastBar;
    for (const DeviceColumn& column : fitting) {
      sum += column.width + 1;
    }
    return sum;
  };
  while (total() > columns && fitting.size() > 1) {
    fitting.erase(std::min_element(
        fitting.begin(), fitting.end(), [](const DeviceColumn& a, const DeviceColumn& b) {
          return a.importance < b.importance;
        }));
  }
  return fitting;
}

// `whole_s` takes the whole width.
void draw_bar(
    Canvas& canvas, int column, int width, int line, const StepTiming& timing, double whole_s) {
  double sum = 0;
  int begin = column;
  for (const BarPart& part : bar_parts()) {
    const double seconds = part.seconds(timing);
    sum += known(seconds) ? std::max(seconds, 0.0) : 0;
    const int end = column + static_cast<int>(std::lround(width * std::min(sum / whole_s, 1.0)));
    canvas.fill(begin, end, line, canvas.style().either(part.unicode, part.ascii), part.ink);
    begin = end;
  }
}

}  // namespace

int draw_bar_legend(Canvas& canvas, int column, int line) {
  for (const BarPart& part : bar_parts()) {
    canvas.write(column, line, "   ");
    column =
        canvas.write(column + 1, line, canvas.style().either(part.unicode, part.ascii), part.ink);
    column = canvas.write(column + 1, line, part.name);
  }
  return canvas.write(column, line, " ");
}

void draw_devices(Canvas& canvas,
                  const CanvasBox& box,
                  const std::vector<DeviceNow>& devices,
                  int first) {
  const std::vector<DeviceColumn> columns = fitting_columns(devices, canvas.style(), box.columns);
  int bar_width = box.columns;
  for (const DeviceColumn& column : columns) {
    bar_width -= column.width + 1;
  }
  double longest_s = 0;
  for (const DeviceNow& device : devices) {
    longest_s = device.timing && known(device.timing->step_s)
                    ? std::max(longest_s, device.timing->step_s)
                    : longest_s;
  }
  const auto write = [&](const DeviceColumn& column, int at, int line, const Entry& entry) {
    if (column.left) {
      canvas.write(at, line, entry.text, entry.ink, column.width);
    } else {
      canvas.write_left_of(at + column.width, line, entry.text, entry.ink);
    }
  };
  for (int row = 0; row < box.lines && first + row - 1 < std::ssize(devices); ++row) {
    const DeviceNow* device =
        row == 0 ? nullptr : &devices[static_cast<std::size_t>(first + row - 1)];
    int at = box.column;
    for (const DeviceColumn& column : columns) {
      write(column,
            at,
            box.line + row,
            device == nullptr ? Entry{column.title, Ink::Faint}
                              : column.entry(*device, canvas.style()));
      at += column.width + 1;
      if (std::string(column.title) == "step") {
        if (device != nullptr && device->timing && longest_s > 0) {
          draw_bar(canvas, at, bar_width - 1, box.line + row, *device->timing, longest_s);
        }
        at += bar_width;
      }
    }
  }
}

}  // namespace tessera::engine
