#include "engine/power/file_meter.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <vector>

#include "engine/system/clock.h"
#include "partitioner/base/errors.h"
#include "partitioner/base/number_text.h"
#include "partitioner/base/printable.h"
#include "partitioner/base/regular_file.h"

namespace tessera::engine {

namespace {

struct Point {
  double time_s = 0;
  std::optional<double> value;  // nothing: looks fail from here on
};

struct Curve {
  bool counts_joules = false;
  double period_s = 0.1;
  std::vector<Point> points;  // by time
};

class CurveReader {
 public:
  explicit CurveReader(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] Curve curve(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      std::istringstream words(line.substr(0, line.find('#')));
      std::string first;
      std::string second;
      std::string third;
      words >> first >> second >> third;
      if (!third.empty()) {
        fail(line);
      }
      if (!first.empty()) {
        add(line, first, second);
      }
    }
    if (curve_.points.empty()) {
      throw InputError(name_, 0, "has no readings: lines of seconds and watts");
    }
    return curve_;
  }

 private:
  [[noreturn]] void fail(const std::string& line) const {
    throw InputError(name_,
                     line_,
                     fmt::format("\"{}\" is not \"joules\", \"period SECONDS\" (0.001 to 86400), "
                                 "\"SECONDS WATTS\" "
                                 "or \"SECONDS fail\", in the order of time",
                                 printable_start(line)));
  }

  void add(const std::string& line, const std::string& first, const std::string& second) {
    if (first == "joules" && second.empty()) {
      curve_.counts_joules = true;
      return;
    }
    const auto value = finite_number(second);
    if (first == "period") {
      constexpr double kShortest = 0.001;
      constexpr double kLongest = 86400;
      if (!value || *value < kShortest || *value > kLongest) {
        fail(line);
      }
      curve_.period_s = *value;
      return;
    }
    const auto time_s = finite_number(first);
    if (!time_s || (!value && second != "fail") ||
        (!curve_.points.empty() && *time_s <= curve_.points.back().time_s)) {
      fail(line);
    }
    curve_.points.push_back({*time_s, value});
  }

  std::string name_;
  int line_ = 0;
  Curve curve_;
};

std::optional<double> value_at(const std::vector<Point>& points, double time_s) {
  const auto after =
      std::upper_bound(points.begin(), points.end(), time_s, [](double time, const Point& point) {
        return time < point.time_s;
      });
  if (after == points.begin()) {
    return after->value;
  }
  const Point& before = *std::prev(after);
  if (after == points.end() || !before.value || !after->value) {
    return before.value;
  }
  const double part = (time_s - before.time_s) / (after->time_s - before.time_s);
  return *before.value + part * (*after->value - *before.value);
}

}  // namespace

PowerMeter file_meter(const std::filesystem::path& path) {
  constexpr Index kMostBytes = Index{16} << 20U;
  const std::string name = path.string();
  const Curve curve =
      CurveReader(name).curve(read_regular_file(path, "readings of a meter", kMostBytes));
  MeterDescription description;
  description.source = "file";
  description.period_s = curve.period_s;
  description.counts_joules = curve.counts_joules;
  description.relative_error = 0;
  return PowerMeter(description, [curve, name, start = now_s()](const MeterQuery&) {
    const auto value = value_at(curve.points, now_s() - start);
    if (!value) {
      throw InputError(name, 0, "there is no reading at this time");
    }
    return *value;
  });
}

}  // namespace tessera::engine
