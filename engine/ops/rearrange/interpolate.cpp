#include <vector>

#include "engine/ops/loops/lines.h"
#include "engine/ops/rearrange/rearrange.h"

namespace tessera::engine {

namespace {

// Where a cell of the output lies along an axis: between which two of the input, and their shares.
template <class T>
struct Between {
  Index first = 0;
  Index second = 0;
  T of_first = 1;
  T of_second = 0;
};

template <class T>
Between<T> between(Index out, Index stride, Index cells) {
  const partitioner::BetweenCells place = partitioner::between_cells(out, stride, cells);
  const T part = static_cast<T>(place.part) / static_cast<T>(2 * stride);
  return {place.first, place.part > 0 ? place.first + 1 : place.first, 1 - part, part};
}

template <class T>
std::vector<Between<T>> columns_between(const FinerGrid& grid, const Range& cols) {
  std::vector<Between<T>> columns;
  for (Index col = cols.begin; col < cols.end; ++col) {
    columns.push_back(between<T>(col, grid.stride, grid.cols));
  }
  return columns;
}

}  // namespace

template <class T>
void interpolate_forward(
    const FinerGrid& grid, T factor, View<const T> in, const Region& region, View<T> out) {
  const std::vector<Between<T>> columns = columns_between<T>(grid, region.cols);
  for_each_line(
      region, channel_runs(region.channels, out, in), [&](const Range& run, Index n, Index row) {
        const Between<T> rows = between<T>(row, grid.stride, grid.rows);
        const T* above = line_start(in, run, n, rows.first, in.region.cols.begin);
        const T* below = line_start(in, run, n, rows.second, in.region.cols.begin);
        T* y = line_start(out, run, n, row, region.cols.begin);
        for (const Between<T>& cols : columns) {
          const Index left = (cols.first - in.region.cols.begin) * in.block;
          const Index right = (cols.second - in.region.cols.begin) * in.block;
          // Written so that compilers can fuse multiplications and additions in one way only: the
          // bits of a cell are the same for any number of channels.
          for_each_channel(run.size(), [&](Index l) {
            const T upper = above[left + l] + cols.of_second * (above[right + l] - above[left + l]);
            const T lower = below[left + l] + cols.of_second * (below[right + l] - below[left + l]);
            y[l] = factor * (upper + rows.of_second * (lower - upper));
          });
          y += out.block;
        }
      });
}

// Row by row of the input: threads do not meet.
template <class T>
void interpolate_backward(const FinerGrid& grid,
                          T factor,
                          View<const T> out_gradient,
                          const Region& region,
                          const Region& cells,
                          View<T> in_gradient) {
  if (region.empty()) {
    return;
  }
  const std::vector<Between<T>> columns = columns_between<T>(grid, region.cols);
  const auto add_row = [&](const Range& run, Index n, Index to_row, Index row) {
    const Between<T> rows = between<T>(row, grid.stride, grid.rows);
    const T share = factor * ((rows.first == to_row ? rows.of_first : T{}) +
                              (rows.second == to_row ? rows.of_second : T{}));
    if (share == 0) {
      return;
    }
    const T* g = line_start(out_gradient, run, n, row, region.cols.begin);
    T* x = line_start(in_gradient, run, n, to_row, in_gradient.region.cols.begin);
    for (const Between<T>& cols : columns) {
      T* left = x + (cols.first - in_gradient.region.cols.begin) * in_gradient.block;
      T* right = x + (cols.second - in_gradient.region.cols.begin) * in_gradient.block;
      for_each_channel(run.size(), [&](Index l) { left[l] += share * cols.of_first * g[l]; });
      for_each_channel(run.size(), [&](Index l) { right[l] += share * cols.of_second * g[l]; });
      g += out_gradient.block;
    }
  };
  Region lines = region;
  lines.rows = cells.rows;
  for_each_line(lines,
                channel_runs(region.channels, out_gradient, in_gradient),
                [&](const Range& run, Index n, Index to_row) {
                  const Range rows = intersect(
                      {(to_row - 1) * grid.stride, (to_row + 2) * grid.stride}, region.rows);
                  for (Index row = rows.begin; row < rows.end; ++row) {
                    add_row(run, n, to_row, row);
                  }
                });
}

template void interpolate_forward<float>(
    const FinerGrid&, float, View<const float>, const Region&, View<float>);
template void interpolate_forward<double>(
    const FinerGrid&, double, View<const double>, const Region&, View<double>);
template void interpolate_backward<float>(
    const FinerGrid&, float, View<const float>, const Region&, const Region&, View<float>);
template void interpolate_backward<double>(
    const FinerGrid&, double, View<const double>, const Region&, const Region&, View<double>);

}  // namespace tessera::engine
