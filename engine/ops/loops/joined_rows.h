// Short rows that follow each other in memory, taken as one: what is done for each row is done less
// often. What that makes of sums does not depend on the number of threads.

#pragma once

#include <algorithm>

#include "engine/base/tensor.h"

namespace tessera::engine {

// How many rows of the region to take as one, which divides their number: 1 unless these are all
// the rows, and all the columns, of every view.
template <class... T>
[[nodiscard]] Index rows_at_once(const Region& region, const View<T>&... views) {
  constexpr Index kMostCells = 224;  // that a first level of cache holds in a block of channels
  const bool whole =
      (... && (views.region.rows == region.rows && views.region.cols == region.cols));
  if (!whole || region.empty()) {
    return 1;
  }
  Index rows = std::clamp<Index>(kMostCells / region.cols.size(), 1, region.rows.size());
  while (region.rows.size() % rows != 0) {
    --rows;
  }
  return rows;
}

// The region with `rows` rows taken as one.
[[nodiscard]] inline Region joined(Region region, Index rows) {
  if (rows > 1) {
    region.rows = {0, region.rows.size() / rows};
    region.cols = {0, region.cols.size() * rows};
  }
  return region;
}

template <class T>
[[nodiscard]] View<T> joined(View<T> view, Index rows) {
  view.region = joined(view.region, rows);
  return view;
}

}  // namespace tessera::engine
