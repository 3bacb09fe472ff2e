#include "engine/ops/pool.h"

#include <array>

#include "engine/ops/lines.h"
#include "engine/ops/row_kernels.h"

namespace engine {

namespace {

using partitioner::intersect;
using partitioner::MaxPool;

Range window(const MaxPool& pool, Index out, const Range& map) {
  const Index begin = out * pool.stride - pool.padding / 2;
  return intersect({begin, begin + pool.size}, map);
}

// The largest values of a window for each lane of a run, and where they are.
template <class T>
struct Winners {
  std::array<T, static_cast<std::size_t>(kMostLanes)> value;
  std::array<Index, static_cast<std::size_t>(kMostLanes)> row;
  std::array<Index, static_cast<std::size_t>(kMostLanes)> col;
};

template <class T>
Winners<T> find_winners(
    View<const T> in, const Range& run, Index n, const Range& rows, const Range& cols) {
  Winners<T> best{};
  const T* first = line_start(in, run, n, rows.begin, cols.begin);
  for (Index l = 0; l < run.size(); ++l) {
    const auto lane = static_cast<std::size_t>(l);
    best.value[lane] = first[l];
    best.row[lane] = rows.begin;
    best.col[lane] = cols.begin;
  }
  for (Index row = rows.begin; row < rows.end; ++row) {
    const T* cells = line_start(in, run, n, row, cols.begin);
    for (Index col = cols.begin; col < cols.end; ++col, cells += in.block) {
      for (Index l = 0; l < run.size(); ++l) {
        const auto lane = static_cast<std::size_t>(l);
        if (cells[l] > best.value[lane]) {
          best.value[lane] = cells[l];
          best.row[lane] = row;
          best.col[lane] = col;
        }
      }
    }
  }
  return best;
}

}  // namespace

template <class T>
void max_pool_forward(
    const MaxPool& pool, View<const T> in, const Region& map, const Region& region, View<T> out) {
  const auto runs = channel_runs(region.channels, in, out);
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    const Index lanes = whole_lanes(run, in, out);
    const Range rows = window(pool, row, map.rows);
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      const Range cols = window(pool, col, map.cols);
      row_kernels<T>().pool({line_start(in, run, n, rows.begin, cols.begin),
                             in.row_stride(),
                             in.block,
                             rows.size(),
                             cols.size(),
                             lanes},
                            line_start(out, run, n, row, col));
    }
  });
}

template <class T>
void max_pool_backward(const MaxPool& pool,
                       View<const T> in,
                       View<const T> out,
                       const Region& map,
                       View<const T> out_gradient,
                       const Region& region,
                       View<T> in_gradient) {
  const auto runs = channel_runs(region.channels, in, out, out_gradient, in_gradient);
  const Index run_count = static_cast<Index>(runs.size());
  // Windows of neighbouring rows share cells, so a thread takes whole maps.
#pragma omp parallel for collapse(2) schedule(static)
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index i = 0; i < run_count; ++i) {
      const Range& run = runs[static_cast<std::size_t>(i)];
      const Index lanes = whole_lanes(run, in, out, out_gradient, in_gradient);
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        const Range rows = window(pool, row, map.rows);
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          const Range cols = window(pool, col, map.cols);
          row_kernels<T>().pool_gradient({line_start(in, run, n, rows.begin, cols.begin),
                                          in.row_stride(),
                                          in.block,
                                          rows.size(),
                                          cols.size(),
                                          lanes},
                                         line_start(out, run, n, row, col),
                                         line_start(out_gradient, run, n, row, col),
                                         line_start(in_gradient, run, n, rows.begin, cols.begin),
                                         in_gradient.row_stride(),
                                         in_gradient.block);
        }
      }
    }
  }
}

template <class T>
void max_pool_winners(
    const MaxPool& pool, View<const T> in, const Region& map, const Region& region, View<T> out) {
  for_each_line(
      region, channel_runs(region.channels, in, out), [&](const Range& run, Index n, Index row) {
        for (Index col = region.cols.begin; col < region.cols.end; ++col) {
          const Winners<T> best =
              find_winners(in, run, n, window(pool, row, map.rows), window(pool, col, map.cols));
          T* place = line_start(out, run, n, row, col);
          for (Index l = 0; l < run.size(); ++l) {
            const auto lane = static_cast<std::size_t>(l);
            const Index begin_row = row * pool.stride - pool.padding / 2;
            const Index begin_col = col * pool.stride - pool.padding / 2;
            place[l] = static_cast<T>((best.row[lane] - begin_row) * pool.size + best.col[lane] -
                                      begin_col);
          }
        }
      });
}

template <class T>
void average_pool_forward(View<const T> in, const Region& map, const Region& region, View<T> out) {
  const double cells = static_cast<double>(map.rows.size() * map.cols.size());
  for_each_line(
      region, channel_runs(region.channels, in, out), [&](const Range& run, Index n, Index) {
        std::array<double, static_cast<std::size_t>(kMostLanes)> sums{};
        for (Index row = map.rows.begin; row < map.rows.end; ++row) {
          const T* x = line_start(in, run, n, row, map.cols.begin);
          for (Index col = 0; col < map.cols.size(); ++col) {
            for_each_lane(run.size(), [&](Index l) {
              sums[static_cast<std::size_t>(l)] += static_cast<double>(x[col * in.block + l]);
            });
          }
        }
        T* mean = line_start(out, run, n, 0, 0);
        for (Index l = 0; l < run.size(); ++l) {
          mean[l] = static_cast<T>(sums[static_cast<std::size_t>(l)] / cells);
        }
      });
}

template <class T>
void average_pool_backward(View<const T> out_gradient,
                           const Region& map,
                           const Region& region,
                           View<T> in_gradient) {
  const T share = T(1) / static_cast<T>(map.rows.size() * map.cols.size());
  for_each_line(region,
                channel_runs(region.channels, out_gradient, in_gradient),
                [&](const Range& run, Index n, Index) {
                  const T* gradient = line_start(out_gradient, run, n, 0, 0);
                  for (Index row = map.rows.begin; row < map.rows.end; ++row) {
                    T* g = line_start(in_gradient, run, n, row, map.cols.begin);
                    for (Index col = 0; col < map.cols.size(); ++col) {
                      for_each_lane(run.size(), [&](Index l) {
                        g[col * in_gradient.block + l] += gradient[l] * share;
                      });
                    }
                  }
                });
}

template void max_pool_forward<float>(
    const MaxPool&, View<const float>, const Region&, const Region&, View<float>);
template void max_pool_forward<double>(
    const MaxPool&, View<const double>, const Region&, const Region&, View<double>);
template void max_pool_backward<float>(const MaxPool&,
                                       View<const float>,
                                       View<const float>,
                                       const Region&,
                                       View<const float>,
                                       const Region&,
                                       View<float>);
template void max_pool_backward<double>(const MaxPool&,
                                        View<const double>,
                                        View<const double>,
                                        const Region&,
                                        View<const double>,
                                        const Region&,
                                        View<double>);
template void max_pool_winners<float>(
    const MaxPool&, View<const float>, const Region&, const Region&, View<float>);
template void max_pool_winners<double>(
    const MaxPool&, View<const double>, const Region&, const Region&, View<double>);
template void average_pool_forward<float>(View<const float>,
                                          const Region&,
                                          const Region&,
                                          View<float>);
template void average_pool_forward<double>(View<const double>,
                                           const Region&,
                                           const Region&,
                                           View<double>);
template void average_pool_backward<float>(View<const float>,
                                           const Region&,
                                           const Region&,
                                           View<float>);
template void average_pool_backward<double>(View<const double>,
                                            const Region&,
                                            const Region&,
                                            View<double>);

}  // namespace engine
