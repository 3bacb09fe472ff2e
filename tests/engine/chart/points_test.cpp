#include "engine/chart/points.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

using engine::Point;
using engine::smoothed;
using engine::thinned;

constexpr double kHole = std::numeric_limits<double>::quiet_NaN();

std::vector<Point> noise(int count) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    points.push_back({static_cast<double>(i), std::sin(i * i * 0.37)});
  }
  return points;
}

TEST_CASE("a short series is not thinned") {
  const std::vector<Point> points = noise(40);
  CHECK(thinned(points, 10) == points);
  CHECK(thinned({}, 10).empty());
}

TEST_CASE("a long series keeps its first, last, lowest and highest points, in their order") {
  std::vector<Point> points = noise(10'000);
  points[1234].y = 9;
  points[8765].y = -9;
  const std::vector<Point> few = thinned(points, 100);
  CHECK(few.size() <= 404);
  CHECK(few.front() == points.front());
  CHECK(few.back() == points.back());
  CHECK(std::count(few.begin(), few.end(), points[1234]) == 1);
  CHECK(std::count(few.begin(), few.end(), points[8765]) == 1);
  CHECK(std::is_sorted(
      few.begin(), few.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
}

TEST_CASE("a gap within a column of a thinned series stays a gap") {
  std::vector<Point> points = noise(1000);
  points[501].y = kHole;
  points[502].y = kHole;
  const std::vector<Point> few = thinned(points, 10);
  const auto gap =
      std::find_if(few.begin(), few.end(), [](const Point& point) { return std::isnan(point.y); });
  REQUIRE(gap != few.end());
  CHECK((gap - 1)->x == 500);
  CHECK((gap + 1)->x == 503);
}

TEST_CASE("points that all have the same x do not multiply") {
  CHECK(thinned(std::vector<Point>(1000, Point{3, 1}), 10).size() <= 4);
}

TEST_CASE("smoothing keeps a constant from its first point on, and gaps") {
  std::vector<Point> points(50, Point{0, 2.5});
  points[7].y = kHole;
  const std::vector<Point> means = smoothed(points, 10);
  CHECK(means.front().y == doctest::Approx(2.5));
  CHECK(std::isnan(means[7].y));
  CHECK(means.back().y == doctest::Approx(2.5));
}

TEST_CASE("smoothing follows a step within its window") {
  std::vector<Point> points(100, Point{0, 0});
  std::fill(points.begin() + 50, points.end(), Point{0, 1});
  const std::vector<Point> means = smoothed(points, 5);
  CHECK(means[49].y == doctest::Approx(0));
  CHECK(means[50].y < 0.5);
  CHECK(means[75].y > 0.98);
}

}  // namespace
