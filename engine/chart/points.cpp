#include "engine/chart/points.h"

#include <algorithm>
#include <cmath>

namespace tessera::engine {

namespace {

// Appends the first, the lowest, the highest and the last of some points, in their order.
void append_extremes(std::span<const Point> points, std::vector<Point>& result) {
  const auto lower = [](const Point& a, const Point& b) { return a.y < b.y; };
  const auto [lowest, highest] = std::minmax_element(points.begin(), points.end(), lower);
  std::size_t kept[] = {0,
                        static_cast<std::size_t>(lowest - points.begin()),
                        static_cast<std::size_t>(highest - points.begin()),
                        points.size() - 1};
  std::sort(std::begin(kept), std::end(kept));
  for (std::size_t i = 0; i < std::size(kept); ++i) {
    if (i == 0 || kept[i] != kept[i - 1]) {
      result.push_back(points[kept[i]]);
    }
  }
}

}  // namespace

std::vector<Point> thinned(std::span<const Point> points, std::size_t columns) {
  constexpr std::size_t kOfColumn = 4;
  if (columns == 0 || points.size() <= kOfColumn * columns) {
    return {points.begin(), points.end()};
  }
  const double first = points.front().x;
  const double width = (points.back().x - first) / static_cast<double>(columns);
  const auto column_of = [&](const Point& point) {
    return width > 0 ? std::floor((point.x - first) / width) : 0;
  };
  std::vector<Point> result;
  for (std::size_t begin = 0; begin < points.size();) {
    const bool gap = !std::isfinite(points[begin].y);
    std::size_t end = begin + 1;
    while (end < points.size() && std::isfinite(points[end].y) != gap &&
           column_of(points[end]) == column_of(points[begin])) {
      ++end;
    }
    if (!gap) {
      append_extremes(points.subspan(begin, end - begin), result);
    } else if (result.empty() || std::isfinite(result.back().y)) {
      result.push_back(points[begin]);
    }
    begin = end;
  }
  return result;
}

std::vector<Point> smoothed(std::span<const Point> points, double window) {
  std::vector<Point> result(points.begin(), points.end());
  const double keep = window > 0 ? std::exp(-1 / window) : 0;
  double sum = 0;
  double weight = 0;  // corrects for the points that are missing before the first
  for (Point& point : result) {
    if (std::isfinite(point.y)) {
      sum = keep * sum + (1 - keep) * point.y;
      weight = keep * weight + (1 - keep);
      point.y = sum / weight;
    }
  }
  return result;
}

}  // namespace tessera::engine
