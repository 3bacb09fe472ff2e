#include "engine/ops/pool/pool.h"

#include <array>
#include <vector>

#include "engine/ops/loops/threads.h"
#include "engine/ops/pool/pool_windows.h"

namespace tessera::engine {

template <class T>
void max_pool_forward(const PoolSite& site, View<const T> in, const Pooled<T>& out) {
  const Region& held = in.region;
  const View<ArgmaxOffset> argmax = argmax_cells(out);
  const auto runs = channel_runs(site.region.channels, in, out.values, argmax);
  for_each_line(site.region, runs, [&](const Range& run, Index n, Index row) {
    const CellRows<const T> cells{line_start(in, run, n, held.rows.begin, held.cols.begin),
                                  held.rows.begin,
                                  held.cols.begin,
                                  in.row_stride(),
                                  in.block};
    pool_line(site,
              cells,
              {row, site.region.cols},
              channels_of_block(run, in, out.values, argmax),
              pooled_line(out, run, n, row, site.region.cols.begin));
  });
}

namespace {

// From so many cells on windows have gradients go to their argmax one by one: to compare it with
// the number of each cell of a window, even with all channels of a vector at once, takes longer.
constexpr Index kManyCells = 16;

// The gradients of the windows of a run of channels, in an image.
template <class T>
void scatter_gradients(const PoolSite& site,
                       const View<const T>& out_gradient,
                       const View<const ArgmaxOffset>& argmax,
                       const Range& run,
                       Index n,
                       const View<T>& in_gradient) {
  const MaxPool& pool = site.pool;
  const Region& region = site.region;
  std::vector<Index> offsets;  // of a window's cells from its first
  for (Index r = 0; r < pool.size; ++r) {
    for (Index c = 0; c < pool.size; ++c) {
      offsets.push_back(r * in_gradient.row_stride() + c * in_gradient.block);
    }
  }
  T* to =
      line_start(in_gradient, run, n, in_gradient.region.rows.begin, in_gradient.region.cols.begin);
  for (Index row = region.rows.begin; row < region.rows.end; ++row) {
    const T* gradients = line_start(out_gradient, run, n, row, region.cols.begin);
    const ArgmaxOffset* numbers = line_start(argmax, run, n, row, region.cols.begin);
    // Of the first window's first cell, which may lie outside the map: the argmax does not.
    Index cells = (window_begin(pool.rows(), row) - in_gradient.region.rows.begin) *
                      in_gradient.row_stride() +
                  (window_begin(pool.cols(), region.cols.begin) - in_gradient.region.cols.begin) *
                      in_gradient.block;
    for (Index col = 0; col < region.cols.size(); ++col) {
      for_each_channel(run.size(),
                       [&](Index l) { to[cells + offsets[numbers[l]] + l] += gradients[l]; });
      gradients += out_gradient.block;
      numbers += argmax.block;
      cells += pool.cols().stride * in_gradient.block;
    }
  }
}

}  // namespace

template <class T>
void max_pool_backward(const PoolSite& site,
                       View<const T> out_gradient,
                       View<const ArgmaxOffset> argmax,
                       View<T> in_gradient) {
  const MaxPool& pool = site.pool;
  const Region& region = site.region;
  const auto runs = channel_runs(region.channels, argmax, out_gradient, in_gradient);
  const Index run_count = static_cast<Index>(runs.size());
  // Windows of neighbouring rows may share cells, so a thread takes whole maps.
  parallel_for(region.images, {0, run_count}, [&](Index n, Index i) {
    const Range& run = runs[static_cast<std::size_t>(i)];
    if (pool.size * pool.size >= kManyCells) {
      scatter_gradients(site, out_gradient, argmax, run, n, in_gradient);
      return;
    }
    const Index channels = channels_of_block(run, argmax, out_gradient, in_gradient);
    for (Index row = region.rows.begin; row < region.rows.end; ++row) {
      const WindowAxis across = pool.cols();
      const Range rows = window_in(pool.rows(), row, site.map.rows);
      for_each_window_run(
          across, region.cols, site.map.cols, [&](Index out, Index count, const Range& cols) {
            for (Index r = rows.begin; r < rows.end; ++r) {
              ArgmaxRow<T> from = argmax_row(out_gradient, argmax, run, n, row, out);
              from.windows = count;
              from.cols = cols.size();
              from.channels = channels;
              from.first = (r - window_begin(pool.rows(), row)) * pool.size + cols.begin -
                           window_begin(across, out);
              row_kernels<T>().add_unpooled({from,
                                             line_start(in_gradient, run, n, r, cols.begin),
                                             in_gradient.block,
                                             across.stride * in_gradient.block});
            }
          });
    }
  });
}

template <class T>
void channel_pool_forward(Index outputs,
                          const Range& channels,
                          View<const T> in,
                          const Region& region,
                          const Pooled<T>& out) {
  const View<ArgmaxOffset>& argmax = out.argmax;
  const auto runs = argmax.data == nullptr ? channel_runs(region.channels, out.values)
                                           : channel_runs(region.channels, out.values, argmax);
  // The `place`-th of the channels that an output chooses from, for the run's first output on.
  const auto take = [&](const Range& run, Index n, Index row, const Range& from, Index place) {
    const Index first = from.begin - place * outputs - run.begin;
    const T* x = line_start(in, from, n, row, region.cols.begin);
    T* y = line_start(out.values, run, n, row, region.cols.begin) + first;
    ArgmaxOffset* offsets = argmax.data == nullptr
                                ? nullptr
                                : line_start(argmax, run, n, row, region.cols.begin) + first;
    for (Index col = 0; col < region.cols.size(); ++col) {
      for_each_channel(from.size(), [&](Index l) {
        const bool larger = place == 0 || x[l] > y[l] || x[l] != x[l];  // NaN stays NaN
        y[l] = larger ? x[l] : y[l];
        if (offsets != nullptr) {
          offsets[l] = larger ? static_cast<ArgmaxOffset>(place) : offsets[l];
        }
      });
      x += in.block;
      y += out.values.block;
      offsets += offsets == nullptr ? 0 : argmax.block;
    }
  };
  for_each_line(region, runs, [&](const Range& run, Index n, Index row) {
    for (Index place = 0; run.begin + place * outputs < channels.end; ++place) {
      const Index shift = place * outputs;
      for_each_channel_run(
          {run.begin + shift, std::min(run.end + shift, channels.end)},
          [&](const Range& from) { take(run, n, row, from, place); },
          in);
    }
  });
}

template <class T>
void channel_pool_backward(Index outputs,
                           View<const T> out_gradient,
                           View<const ArgmaxOffset> argmax,
                           const Region& region,
                           View<T> in_gradient) {
  if (region.empty()) {
    return;
  }
  parallel_for(region.images, region.rows, [&](Index n, Index row) {
    for (Index col = region.cols.begin; col < region.cols.end; ++col) {
      for (Index k = region.channels.begin; k < region.channels.end; ++k) {
        const Index c = k + argmax.at(n, k, row, col) * outputs;
        in_gradient.at(n, c, row, col) += out_gradient.at(n, k, row, col);
      }
    }
  });
}

template <class T>
void average_pool_forward(View<const T> in, const Region& map, const Region& region, View<T> out) {
  const double cells = static_cast<double>(map.rows.size() * map.cols.size());
  for_each_line(
      region, channel_runs(region.channels, in, out), [&](const Range& run, Index n, Index) {
        alignas(kAlignment) std::array<double, static_cast<std::size_t>(kMostChannels)> sums{};
        const Index channels = channels_of_block(run, in, out);
        for (Index row = map.rows.begin; row < map.rows.end; ++row) {
          row_kernels<T>().add_cells(line_start(in, run, n, row, map.cols.begin),
                                     in.block,
                                     map.cols.size(),
                                     channels,
                                     sums.data());
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
                      for_each_channel(run.size(), [&](Index l) {
                        g[col * in_gradient.block + l] += gradient[l] * share;
                      });
                    }
                  }
                });
}

template void max_pool_forward<float>(const PoolSite&, View<const float>, const Pooled<float>&);
template void max_pool_backward<float>(const PoolSite&,
                                       View<const float>,
                                       View<const ArgmaxOffset>,
                                       View<float>);
template void max_pool_forward<double>(const PoolSite&, View<const double>, const Pooled<double>&);
template void max_pool_backward<double>(const PoolSite&,
                                        View<const double>,
                                        View<const ArgmaxOffset>,
                                        View<double>);
template void channel_pool_forward<float>(
    Index, const Range&, View<const float>, const Region&, const Pooled<float>&);
template void channel_pool_forward<double>(
    Index, const Range&, View<const double>, const Region&, const Pooled<double>&);
template void channel_pool_backward<float>(
    Index, View<const float>, View<const ArgmaxOffset>, const Region&, View<float>);
template void channel_pool_backward<double>(
    Index, View<const double>, View<const ArgmaxOffset>, const Region&, View<double>);
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

}  // namespace tessera::engine
