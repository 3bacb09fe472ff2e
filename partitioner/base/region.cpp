#include "partitioner/base/region.h"

#include <algorithm>
#include <ostream>

namespace tessera {

Region hull(const Region& a, const Region& b) {
  if (a.empty()) {
    return b;
  }
  if (b.empty()) {
    return a;
  }
  const auto join = [](const Range& x, const Range& y) {
    return Range{std::min(x.begin, y.begin), std::max(x.end, y.end)};
  };
  return {join(a.images, b.images),
          join(a.channels, b.channels),
          join(a.rows, b.rows),
          join(a.cols, b.cols)};
}

bool contains(const Range& outer, const Range& inner) {
  return inner.empty() || intersect(outer, inner) == inner;
}

bool contains(const Region& outer, const Region& inner) {
  return inner.empty() || intersect(outer, inner) == inner;
}

std::vector<Region> subtract(const Region& outer, const Region& inner) {
  const Region hole = intersect(outer, inner);
  if (outer.empty()) {
    return {};
  }
  if (hole.empty()) {
    return {outer};
  }
  std::vector<Region> pieces;
  Region rest = outer;
  // Cut off what lies before and after the hole in one dimension, then go on with the slab that is
  // left.
  const auto peel = [&](Range Region::*dimension) {
    Region before = rest;
    Region after = rest;
    (before.*dimension).end = (hole.*dimension).begin;
    (after.*dimension).begin = (hole.*dimension).end;
    for (const Region& piece : {before, after}) {
      if (!piece.empty()) {
        pieces.push_back(piece);
      }
    }
    rest.*dimension = hole.*dimension;
  };
  peel(&Region::images);
  peel(&Region::channels);
  peel(&Region::rows);
  peel(&Region::cols);
  return pieces;
}

std::ostream& operator<<(std::ostream& out, const Range& range) {
  return out << '[' << range.begin << ", " << range.end << ')';
}

std::ostream& operator<<(std::ostream& out, const Region& region) {
  return out << "images " << region.images << " channels " << region.channels << " rows "
             << region.rows << " cols " << region.cols;
}

}  // namespace tessera
