#include "engine/ops/norm/fused_pool.h"

#include <algorithm>
#include <array>

#include "engine/ops/pool/pool_windows.h"

namespace tessera::engine {

namespace {

constexpr Index kMadeCells = 256;  // that are made before they are pooled; holds any window

// Pools cells that make(by, channels, from, cells, to) turns `cells` cells of `in` into, where `by`
// is prepare(run).
template <class T, class Prepare, class Make>
void pool_made_lines(
    View<const T> in, const PoolSite& site, const Pooled<T>& out, Prepare prepare, Make make) {
  const MaxPool& pool = site.pool;
  const View<ArgmaxOffset> argmax = argmax_cells(out);
  const auto runs = channel_runs(site.region.channels, in, out.values, argmax);
  const RunValues<decltype(prepare(Range{}))> by(runs, prepare);
  const Index at_once = kMadeCells / (pool.size * pool.size);
  for_each_line(site.region, runs, [&](const Range& run, Index n, Index out_row) {
    alignas(kAlignment) std::array<T, static_cast<std::size_t>(kMadeCells * kMostChannels)> made;
    const Index channels = channels_of_block(run, in, out.values, argmax);
    const Range rows = window_in(pool.rows(), out_row, site.map.rows);
    const Index end = site.region.cols.end;
    for (Index first = site.region.cols.begin; first < end; first += at_once) {
      const Range outs{first, std::min(first + at_once, end)};
      const Range cols{window_in(pool.cols(), outs.begin, site.map.cols).begin,
                       window_in(pool.cols(), outs.end - 1, site.map.cols).end};
      const CellRows<T> lines{
          made.data(), rows.begin, cols.begin, cols.size() * channels, channels};
      for (Index row = rows.begin; row < rows.end; ++row) {
        const T* from = line_start(in, run, n, row, cols.begin);
        make(by[run], channels, from, cols.size(), lines.at(row, cols.begin));
      }
      pool_line(site,
                CellRows<const T>{made.data(), rows.begin, cols.begin, lines.row_stride, channels},
                {out_row, outs},
                channels,
                pooled_line(out, run, n, out_row, first));
    }
  });
}

}  // namespace

template <class T>
void normalize_pool_forward(View<const T> in,
                            const Normalization<T>& by,
                            const PoolSite& site,
                            const Pooled<T>& out) {
  pool_made_lines(
      in,
      site,
      out,
      [&](const Range& run) { return block_norms(by, run); },
      [&](const BlockNorms<T>& norms, Index channels, const T* x, Index cells, T* y) {
        row_kernels<T>().normalize(
            {x, in.block, y, channels, cells, channels, &norms, by.activation});
      });
}

template <class T>
void activate_pool_forward(Activation activation,
                           View<const T> in,
                           const PoolSite& site,
                           const Pooled<T>& out) {
  pool_made_lines(
      in,
      site,
      out,
      [&](const Range&) { return activation; },
      [&](Activation by, Index channels, const T* x, Index cells, T* y) {
        row_kernels<T>().activate({x, in.block, channels, cells, channels}, by, y);
      });
}

template void normalize_pool_forward<float>(View<const float>,
                                            const Normalization<float>&,
                                            const PoolSite&,
                                            const Pooled<float>&);
template void normalize_pool_forward<double>(View<const double>,
                                             const Normalization<double>&,
                                             const PoolSite&,
                                             const Pooled<double>&);
template void activate_pool_forward<float>(Activation,
                                           View<const float>,
                                           const PoolSite&,
                                           const Pooled<float>&);
template void activate_pool_forward<double>(Activation,
                                            View<const double>,
                                            const PoolSite&,
                                            const Pooled<double>&);

}  // namespace tessera::engine
