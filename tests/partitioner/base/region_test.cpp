#include "partitioner/base/region.h"

#include <vector>

#include "tests/support/random_network.h"
#include <doctest/doctest.h>

using namespace tessera;  // NOLINT(google-build-using-namespace): a test of this project

namespace {

constexpr int kCases = 2000;
constexpr Index kLeast = -3;  // regions reach outside the map
constexpr Index kMost = 4;

Range random_range(tests::Draw& draw) {
  return {draw.between(kLeast, kMost), draw.between(kLeast, kMost)};  // often empty
}

Region random_region(tests::Draw& draw) {
  return {random_range(draw), random_range(draw), random_range(draw), random_range(draw)};
}

Region random_box(tests::Draw& draw) {
  Region region = random_region(draw);
  while (region.empty()) {
    region = random_region(draw);
  }
  return region;
}

// Calls visit(cell) for every cell of the space that the random regions lie in, as a region of one
// cell.
template <class Visit>
void for_each_cell(Visit visit) {
  for (Index n = kLeast; n < kMost; ++n) {
    for (Index c = kLeast; c < kMost; ++c) {
      for (Index row = kLeast; row < kMost; ++row) {
        for (Index col = kLeast; col < kMost; ++col) {
          visit(Region{{n, n + 1}, {c, c + 1}, {row, row + 1}, {col, col + 1}});
        }
      }
    }
  }
}

bool holds(const Range& range, Index i) {
  return i >= range.begin && i < range.end;
}

bool holds(const Region& region, const Region& cell) {
  return holds(region.images, cell.images.begin) && holds(region.channels, cell.channels.begin) &&
         holds(region.rows, cell.rows.begin) && holds(region.cols, cell.cols.begin);
}

TEST_CASE("a region's volume is the number of its cells, and one without cells is empty") {
  tests::Draw draw(1);
  for (int i = 0; i < kCases / 10; ++i) {
    const Region region = random_region(draw);
    Index cells = 0;
    for_each_cell([&](const Region& cell) { cells += holds(region, cell) ? 1 : 0; });
    CHECK(region.volume() == cells);
    CHECK(region.empty() == (cells == 0));
  }
}

TEST_CASE("the intersection holds the cells that both regions hold, and no other") {
  tests::Draw draw(2);
  for (int i = 0; i < kCases / 10; ++i) {
    const Region a = random_box(draw);
    const Region b = random_box(draw);
    const Region both = intersect(a, b);
    Index wrong = 0;
    for_each_cell([&](const Region& cell) {
      wrong += holds(both, cell) == (holds(a, cell) && holds(b, cell)) ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "the hull contains both regions, is no larger than it must be, and an empty region adds "
    "nothing") {
  tests::Draw draw(3);
  for (int i = 0; i < kCases; ++i) {
    const Region a = random_region(draw);
    const Region b = random_region(draw);
    const Region both = hull(a, b);
    CHECK(contains(both, a));
    CHECK(contains(both, b));
    if (a.empty()) {
      CHECK((both == b || both.empty()));
    } else if (b.empty()) {
      CHECK(both == a);
    } else {
      CHECK((both.rows.begin == a.rows.begin || both.rows.begin == b.rows.begin));
      CHECK((both.cols.end == a.cols.end || both.cols.end == b.cols.end));
    }
  }
}

TEST_CASE("a region contains another exactly if it holds all of its cells") {
  tests::Draw draw(4);
  for (int i = 0; i < kCases / 10; ++i) {
    const Region outer = random_box(draw);
    const Region inner =
        draw.chance(0.5) ? intersect(outer, random_region(draw)) : random_region(draw);
    bool all = true;
    for_each_cell(
        [&](const Region& cell) { all = all && (!holds(inner, cell) || holds(outer, cell)); });
    CHECK(contains(outer, inner) == all);
  }
}

TEST_CASE("what is left after taking a region away is disjoint, and has every other cell") {
  tests::Draw draw(5);
  for (int i = 0; i < kCases / 4; ++i) {
    const Region outer = random_region(draw);
    const Region inner = random_region(draw);
    const std::vector<Region> pieces = subtract(outer, inner);
    CHECK(pieces.size() <= 8);
    Index wrong = 0;
    for_each_cell([&](const Region& cell) {
      Index count = 0;
      for (const Region& piece : pieces) {
        count += holds(piece, cell) ? 1 : 0;
      }
      wrong += count == (holds(outer, cell) && !holds(inner, cell) ? 1 : 0) ? 0 : 1;
    });
    CHECK(wrong == 0);
  }
}

}  // namespace
