#include "engine/page/device_series.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/run_view/run_figures.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kColumns = 150;  // of a chart
constexpr std::size_t kMostLines = 6;  // that can be distinguished

// Longer without a sample is a gap.
double most_between_s(const RunDevice& device) {
  constexpr double kMostBetween_s = 5;
  return kMostBetween_s * static_cast<double>(device.joined);
}

bool any_known(const std::vector<Point>& points) {
  return std::any_of(
      points.begin(), points.end(), [](const Point& point) { return known(point.y); });
}

void add_gap(std::vector<Point>& points, double x) {
  if (!points.empty() && known(points.back().y)) {
    points.push_back({x, kUnknown});
  }
}

struct Span_s {
  double begin = 0;
  double end = 0;
};

Span_s sampled_time(const RunData& run) {
  Span_s time{INFINITY, -INFINITY};
  for (const auto& [rank, device] : run.devices) {
    if (!device.samples.empty()) {
      time.begin = std::min(time.begin, device.samples.front().t_s);
      time.end = std::max(time.end, device.samples.back().t_s);
    }
  }
  return time;
}

struct RankSeries {
  int rank = 0;
  std::vector<Point> points;
};

// Median, lowest and highest of the ranks in each column.
void add_band(LineChart& chart, const std::vector<RankSeries>& ranks, const Span_s& time) {
  // Two samples of a rank in each, so that none is empty without a gap.
  std::size_t longest = 0;
  for (const RankSeries& each : ranks) {
    longest = std::max(longest, each.points.size());
  }
  std::vector<std::vector<double>> columns(std::clamp<std::size_t>(longest / 2, 1, kColumns));
  const auto count = static_cast<double>(columns.size());
  const double width = (time.end - time.begin) / count;
  for (const RankSeries& each : ranks) {
    for (const Point& point : each.points) {
      const auto column =
          static_cast<std::size_t>(std::clamp((point.x - time.begin) / width, 0.0, count - 1));
      if (known(point.y)) {
        columns[column].push_back(point.y);
      }
    }
  }
  Series median{.name = fmt::format("median of {} ranks", ranks.size())};
  Band band{.name = "lowest to highest"};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double x = time.begin + width * (static_cast<double>(i) + 0.5);
    const std::vector<double>& values = columns[i];
    if (values.empty()) {
      median.points.push_back({x, kUnknown});
      band.low.push_back({x, kUnknown});
      band.high.push_back({x, kUnknown});
      continue;
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    median.points.push_back({x, median_known(values)});
    band.low.push_back({x, *low});
    band.high.push_back({x, *high});
  }
  chart.series.push_back(std::move(median));
  chart.bands.push_back(std::move(band));
}

}  // namespace

std::vector<Point> sampled(const RunDevice& device, const SampleValue& value) {
  std::vector<Point> points;
  for (const DeviceSample& sample : device.samples) {
    if (!points.empty() && sample.t_s > points.back().x + most_between_s(device)) {
      add_gap(points, sample.t_s);
    }
    points.push_back({sample.t_s, value(sample)});
  }
  return points;
}

std::vector<Point> rate_of(const RunDevice& device, const SampleValue& counter) {
  std::vector<Point> points;
  for (std::size_t i = 1; i < device.samples.size(); ++i) {
    const DeviceSample& before = device.samples[i - 1];
    const DeviceSample& now = device.samples[i];
    const double seconds = now.t_s - before.t_s;
    const double rise = counter(now) - counter(before);
    if (seconds > 0 && seconds <= most_between_s(device) && rise >= 0) {
      points.push_back({now.t_s, rise / seconds});
    } else {
      add_gap(points, now.t_s);
    }
  }
  return points;
}

std::vector<Point> energy_of(const RunDevice& device) {
  return sampled(device, [](const DeviceSample& sample) { return sample.energy_j; });
}

std::vector<Point> column_means(const std::vector<Point>& points,
                                double begin_s,
                                double end_s,
                                std::size_t columns) {
  if (points.size() <= 2 * columns || !(end_s > begin_s)) {
    return points;
  }
  struct Sum {
    double y = 0;
    double count = 0;
  };
  std::vector<Sum> sums(columns);
  const double width = (end_s - begin_s) / static_cast<double>(columns);
  for (const Point& point : points) {
    if (known(point.y)) {
      Sum& sum = sums[static_cast<std::size_t>(
          std::clamp((point.x - begin_s) / width, 0.0, static_cast<double>(columns - 1)))];
      sum.y += point.y;
      ++sum.count;
    }
  }
  std::vector<Point> means;
  for (std::size_t i = 0; i < columns; ++i) {
    means.push_back({begin_s + width * (static_cast<double>(i) + 0.5),
                     sums[i].count > 0 ? sums[i].y / sums[i].count : kUnknown});
  }
  return means;
}

void add_ranks(LineChart& chart,
               const RunData& run,
               const std::function<std::vector<Point>(const RunDevice&)>& series) {
  const Span_s time = sampled_time(run);
  std::vector<RankSeries> ranks;
  for (const auto& [rank, device] : run.devices) {
    std::vector<Point> points = series(device);
    if (any_known(points)) {
      ranks.push_back({rank, column_means(points, time.begin, time.end, kColumns)});
    }
  }
  if (ranks.size() > kMostLines && time.end > time.begin) {
    add_band(chart, ranks, time);
    return;
  }
  for (RankSeries& each : ranks) {
    chart.series.push_back({fmt::format("rank {}", each.rank), std::move(each.points), each.rank});
  }
}

}  // namespace tessera::engine
