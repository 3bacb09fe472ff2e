// Points of a series, and fewer of them where a chart could not show all.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::engine {

// A y that is not finite is a gap.
struct Point {
  double x = 0;
  double y = 0;
  friend bool operator==(const Point&, const Point&) = default;
};

// At most four points, the first, the lowest, the highest and the last, of each of so many columns
// of equal width; gaps stay gaps. x must not fall. Short series come back as they are.
[[nodiscard]] std::vector<Point> thinned(std::span<const Point> points, std::size_t columns);

// A running mean with weights that fall by 1/e within `window` points; gaps stay gaps.
[[nodiscard]] std::vector<Point> smoothed(std::span<const Point> points, double window);

}  // namespace tessera::engine
