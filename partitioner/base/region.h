// Boxes of an activation tensor, in global coordinates. Everything geometric in this program is
// made of these: what a rank owns, what it computes, what it requires, what travels in a message.
//
// Ranges are half-open, [begin, end), counted from the first image, the first channel and the
// top-left cell of the whole map. Rows and columns may start below zero: a padded convolution
// requires cells outside.

#pragma once

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <vector>

namespace tessera {

using Index = std::int64_t;  // signed: regions reach outside the image; 64 bits also on 32-bit ARM

struct Range {
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] constexpr Index size() const { return end > begin ? end - begin : 0; }
  [[nodiscard]] constexpr bool empty() const { return end <= begin; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

struct Region {
  Range images;
  Range channels;
  Range rows;
  Range cols;

  [[nodiscard]] constexpr Index volume() const {
    return images.size() * channels.size() * rows.size() * cols.size();
  }
  [[nodiscard]] constexpr bool empty() const { return volume() == 0; }
  friend constexpr bool operator==(const Region&, const Region&) = default;
};

[[nodiscard]] constexpr Range intersect(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// The part in both a and b. Empty regions differ in value and are alike in meaning: ask empty()
// first.
[[nodiscard]] constexpr Region intersect(const Region& a, const Region& b) {
  return {intersect(a.images, b.images),
          intersect(a.channels, b.channels),
          intersect(a.rows, b.rows),
          intersect(a.cols, b.cols)};
}

// The smallest region that holds a and b; an empty one adds nothing.
[[nodiscard]] Region hull(const Region& a, const Region& b);

// Whether every cell of `inner` lies in `outer`; an empty one lies in any.
[[nodiscard]] bool contains(const Range& outer, const Range& inner);
[[nodiscard]] bool contains(const Region& outer, const Region& inner);

// `outer` without `inner`, as at most eight disjoint boxes.
[[nodiscard]] std::vector<Region> subtract(const Region& outer, const Region& inner);

std::ostream& operator<<(std::ostream& out, const Range& range);
std::ostream& operator<<(std::ostream& out, const Region& region);

}  // namespace tessera
