// Maps in the engine's layout, as tests of operators want them: filled from and read back to plain
// maps, and cut into pieces.

#pragma once

#include <cmath>
#include <vector>

#include "tests/support/naive.h"
#include "tests/support/random_network.h"

#include "engine/base/random.h"
#include "engine/base/tensor.h"

namespace tessera::tests {

[[nodiscard]] inline std::vector<double> random_values(Index count, std::uint64_t seed) {
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) {
    // Numbers that single precision holds too.
    values.push_back(static_cast<double>(
        static_cast<float>(engine::random_normal(seed, static_cast<std::uint64_t>(i)))));
  }
  return values;
}

[[nodiscard]] inline PlainMap random_map(const Region& whole, std::uint64_t seed) {
  PlainMap map(whole);
  map.values = random_values(whole.volume(), seed);
  return map;
}

// A tensor on `region`, with the map's values where the map has any and 0 outside.
template <class T>
[[nodiscard]] engine::Tensor<T> tensor_of(PlainMap& map, const Region& region) {
  engine::Tensor<T> tensor(region);
  for_each_cell(intersect(region, map.region), [&](Index n, Index c, Index row, Index col) {
    tensor.view().at(n, c, row, col) = static_cast<T>(map.at(n, c, row, col));
  });
  return tensor;
}

// The largest difference on a region, relative to the largest value of the map.
template <class T>
[[nodiscard]] double relative_difference(engine::View<const T> found,
                                         PlainMap& expected,
                                         const Region& region) {
  double difference = 0;
  double magnitude = 0;
  for_each_cell(region, [&](Index n, Index c, Index row, Index col) {
    const double value = expected.at(n, c, row, col);
    difference =
        std::max(difference, std::abs(static_cast<double>(found.at(n, c, row, col)) - value));
    magnitude = std::max(magnitude, std::abs(value));
  });
  return magnitude == 0 ? difference : difference / magnitude;
}

[[nodiscard]] inline Range random_range(Draw& draw, const Range& within) {
  const Index begin = draw.between(within.begin, within.end - 1);
  return {begin, draw.between(begin + 1, within.end)};
}

// A part of the region, not empty.
[[nodiscard]] inline Region random_part(Draw& draw, const Region& whole) {
  return {random_range(draw, whole.images),
          random_range(draw, whole.channels),
          random_range(draw, whole.rows),
          random_range(draw, whole.cols)};
}

}  // namespace tessera::tests
