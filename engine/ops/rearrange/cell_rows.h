// Rows of cells of two maps that belong together, and what is done with their numbers.

#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/ops/loops/lines.h"

namespace tessera::engine {

// Calls visit(run, n, rows) for each image, run and row of the region, in parallel: for some rows
// at once where they lie without a gap in all views, as if they were one.
template <class Visit, class... T>
void for_each_rows(const Region& region,
                   const std::vector<Range>& runs,
                   Visit visit,
                   const View<T>&... views) {
  constexpr Index kCells = 256;  // of 16 channels: half of a processor's first cache
  const bool dense = (... && (views.region.cols == region.cols));
  const Index cols = std::max<Index>(region.cols.size(), 1);
  const Index at_once = dense ? std::max<Index>(kCells / cols, 1) : 1;
  Region groups = region;
  groups.rows = {0, (region.rows.size() + at_once - 1) / at_once};
  for_each_line(groups, runs, [&](const Range& run, Index n, Index group) {
    const Index first = region.rows.begin + group * at_once;
    visit(run, n, Range{first, std::min(first + at_once, region.rows.end)});
  });
}

// Cells of two views, a step apart in each; `channels`, 16 at most, lie side by side in both.
template <class Out, class In>
struct CellRows {
  Out* to = nullptr;
  Index to_step = 0;
  In* from = nullptr;
  Index from_step = 0;
  Index cells = 0;
  Index channels = 0;

  [[nodiscard]] bool dense() const { return to_step == channels && from_step == channels; }
  [[nodiscard]] CellRows<In, Out> reversed() const {
    return {from, from_step, to, to_step, cells, channels};
  }
};

// Calls visit(to, from) for the numbers of two rows that belong together: no number depends on
// another of its row.
template <class Out, class In, class Visit>
inline void for_each_number(const CellRows<Out, In>& rows, Visit visit) {
  if (rows.dense()) {
#pragma omp simd
    for (Index i = 0; i < rows.cells * rows.channels; ++i) {
      visit(rows.to[i], rows.from[i]);
    }
    return;
  }
  if (rows.channels == 1) {
#pragma GCC unroll 4
    for (Index cell = 0; cell < rows.cells; ++cell) {
      visit(rows.to[cell * rows.to_step], rows.from[cell * rows.from_step]);
    }
    return;
  }
  for (Index cell = 0; cell < rows.cells; ++cell) {
    Out* to = rows.to + cell * rows.to_step;
    In* from = rows.from + cell * rows.from_step;
    for_each_channel(rows.channels, [&](Index l) { visit(to[l], from[l]); });
  }
}

// By instructions of fixed length: the first kFirst numbers of each cell, and the last kLast. A
// copy of the arguments is what compilers know that the numbers are not.
template <Index kFirst, Index kLast, class T>
inline void copy_ends(const CellRows<T, const T> rows) {
  T* to = rows.to;
  const T* from = rows.from;
  const Index last = rows.channels - kLast;
#pragma GCC unroll 4
  for (Index cell = 0; cell < rows.cells; ++cell) {
    std::memcpy(to, from, static_cast<std::size_t>(kFirst) * sizeof(T));
    std::memcpy(to + last, from + last, static_cast<std::size_t>(kLast) * sizeof(T));
    to += rows.to_step;
    from += rows.from_step;
  }
}

template <class T>
inline void copy_rows(const CellRows<T, const T>& rows) {
  if (rows.dense()) {  // the C library can write much without reading first
    std::memcpy(
        rows.to, rows.from, static_cast<std::size_t>(rows.cells * rows.channels) * sizeof(T));
  } else if (rows.channels > 8) {
    copy_ends<8, 8>(rows);
  } else if (rows.channels > 4) {
    copy_ends<4, 4>(rows);
  } else if (rows.channels > 2) {
    copy_ends<2, 2>(rows);
  } else if (rows.channels > 1) {
    copy_ends<1, 1>(rows);
  } else {
    copy_ends<1, 0>(rows);
  }
}

}  // namespace tessera::engine
