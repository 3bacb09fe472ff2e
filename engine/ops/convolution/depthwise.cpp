#include "engine/ops/convolution/depthwise.h"

#include <algorithm>
#include <array>

#include "engine/ops/convolution/met_taps.h"
#include "engine/ops/loops/joined_rows.h"
#include "engine/ops/loops/lines.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/simd/block_kernels.h"
#include "engine/ops/simd/row_kernels.h"

namespace tessera::engine {

namespace {

constexpr std::size_t kMostRowTaps =
    16;  // that one call of a row kernel sums up, at any vector width

// The weights of a run of channels, tap by tap, (taps, kMostChannels). `weight` is that of channel
// `first`; channels beyond the run are left alone.
template <class T>
void pack_channels(
    const ConvolutionShape& shape, const T* weight, Index first, const Range& run, T* to) {
  block_kernels<T>().transpose(
      {weight + (run.begin - first) * shape.taps(), shape.taps(), to, kMostChannels},
      run.size(),
      shape.taps());
}

// Cells of an input, in one dimension and a stride apart, that meet the same taps: the first one's
// `met`, and the others those of the outputs after.
struct AlikeCells {
  Index first = 0;
  Index count = 0;
  MetTaps met;
};

std::vector<AlikeCells> alike_cells(const WindowAxis& axis, const Range& cells, const Range& outs) {
  std::vector<AlikeCells> found;
  for (Index phase = cells.begin; phase < std::min(cells.begin + axis.stride, cells.end); ++phase) {
    MetTaps before;  // of the cell before, none for the first
    for (Index cell = phase; cell < cells.end; cell += axis.stride) {
      const MetTaps met = met_taps(axis, cell, outs);
      if (met.count > 0 && met.count == before.count && met.tap == before.tap) {
        ++found.back().count;
      } else if (met.count > 0) {
        found.push_back({cell, 1, met});
      }
      before = met;
    }
  }
  return found;
}

// The taps of some rows and columns of cells, from the output that the first of each meets.
template <class T>
std::vector<DepthwiseTap> taps_of(const ConvolutionShape& shape,
                                  const AlikeCells& rows,
                                  const AlikeCells& cols,
                                  const View<T>& out_gradient) {
  std::vector<DepthwiseTap> taps;
  for (Index i = 0; i < rows.met.count; ++i) {
    for (Index j = 0; j < cols.met.count; ++j) {
      const Index tap = (rows.met.tap + i * shape.stride.rows) * shape.size.cols + cols.met.tap +
                        j * shape.stride.cols;
      taps.push_back(
          {-i * out_gradient.row_stride() - j * out_gradient.block, tap * kMostChannels});
    }
  }
  return taps;
}

// Cells of an input's gradient that meet the same taps.
struct AlikeRegion {
  AlikeCells rows;
  AlikeCells cols;
  std::vector<DepthwiseTap> taps;
};

template <class T>
std::vector<AlikeRegion> alike_regions(const ConvolutionShape& shape,
                                       const Region& region,
                                       const Region& map,
                                       const View<T>& out_gradient) {
  std::vector<AlikeRegion> regions;
  const std::vector<AlikeCells> cols = alike_cells(shape.cols(), map.cols, region.cols);
  for (const AlikeCells& of_rows : alike_cells(shape.rows(), map.rows, region.rows)) {
    for (const AlikeCells& of_cols : cols) {
      regions.push_back({of_rows, of_cols, taps_of(shape, of_rows, of_cols, out_gradient)});
    }
  }
  return regions;
}

template <class T>
std::vector<Index> tap_offsets(const ConvolutionShape& shape, const View<T>& in) {
  std::vector<Index> offsets;
  for (Index fh = 0; fh < shape.size.rows; ++fh) {
    for (Index fw = 0; fw < shape.size.cols; ++fw) {
      offsets.push_back(fh * in.row_stride() + fw * in.block);
    }
  }
  return offsets;
}

}  // namespace

template <class T>
void DepthwiseKernel::forward(const ForwardArguments<T>& given) const {
  const View<const T>& in = given.in;
  const T* weight = given.filters.weight;
  const T* bias = given.filters.bias;
  const ConvolutionOutput<T>& out = given.out;
  const Region& region = out.region;
  const auto runs = channel_runs(region.channels, in, out.cells);
  const Index run_count = static_cast<Index>(runs.size());
  const Index at_once = rows_at_once(region, out.cells);
  const Index rows = region.rows.size() / at_once;
  const Range image_runs{region.images.begin * run_count, region.images.end * run_count};
  const Index parts = parts_for_threads(1, rows, run_count * region.images.size());
  std::vector<DepthwiseTap> taps;
  for (const Index offset : tap_offsets(shape, in)) {
    taps.push_back({offset, static_cast<Index>(taps.size()) * kMostChannels});
  }
  run_team([&] {
    Array<T> weights(shape.taps() * kMostChannels);
#pragma omp for collapse(2) schedule(static) nowait
    for (Index number = image_runs.begin; number < image_runs.end; ++number) {
      for (Index part = 0; part < parts; ++part) {
        const Index n = number / run_count;
        const Range& run = runs[static_cast<std::size_t>(number % run_count)];
        const Index row = region.rows.begin + rows * part / parts * at_once;
        const Index end = region.rows.begin + rows * (part + 1) / parts * at_once;
        pack_channels(shape, weight, region.channels.begin, run, weights.data());
        alignas(kAlignment) T biases[kMostChannels] = {};
        if (bias != nullptr) {
          std::copy_n(bias + run.begin - region.channels.begin, run.size(), biases);
        }
        row_kernels<T>().depthwise(
            {line_start(in,
                        run,
                        n,
                        row * shape.stride.rows - shape.padding.rows,
                        region.cols.begin * shape.stride.cols - shape.padding.cols),
             in.row_stride() * shape.stride.rows,
             in.block * shape.stride.cols,
             taps.data(),
             shape.taps(),
             weights.data(),
             biases,
             line_start(out.cells, run, n, row, region.cols.begin),
             out.cells.row_stride(),
             out.cells.block,
             end - row,
             region.cols.size(),
             channels_of_block(run, in, out.cells)});
        for (Index line = row; line < end && out.done; line += at_once) {
          out.done(run, n, {line, line + at_once});
        }
      }
    }
  });
}

template <class T>
void DepthwiseKernel::backward_data(const BackwardDataArguments<T>& given) const {
  const View<const T>& out_gradient = given.out_gradient;
  const Filters<T>& filters = given.filters;
  const Region& region = given.region;
  const InputGradient<T>& in_gradient = given.in_gradient;
  const View<T>& cells = in_gradient.cells;
  const auto runs = channel_runs(region.channels, out_gradient, cells);
  const Index run_count = static_cast<Index>(runs.size());
  const auto regions =
      alike_regions(shape, region, intersect(in_gradient.map, cells.region), out_gradient);
  run_team([&] {
    Array<T> weights(shape.taps() * kMostChannels);
#pragma omp for collapse(2) schedule(static) nowait
    for (Index n = region.images.begin; n < region.images.end; ++n) {
      for (Index i = 0; i < run_count; ++i) {
        const Range& run = runs[static_cast<std::size_t>(i)];
        pack_channels(shape, filters.weight, filters.first, run, weights.data());
        const Index channels = channels_of_block(run, out_gradient, cells);
        for (const auto& [rows, cols, taps] : regions) {
          row_kernels<T>().depthwise({line_start(out_gradient, run, n, rows.met.out, cols.met.out),
                                      out_gradient.row_stride(),
                                      out_gradient.block,
                                      taps.data(),
                                      static_cast<Index>(taps.size()),
                                      weights.data(),
                                      nullptr,
                                      line_start(cells, run, n, rows.first, cols.first),
                                      cells.row_stride() * shape.stride.rows,
                                      cells.block * shape.stride.cols,
                                      rows.count,
                                      cols.count,
                                      channels});
        }
      }
    }
  });
}

template <class T>
void DepthwiseKernel::backward_weights(const BackwardWeightsArguments<T>& given) const {
  const View<const T>& in = given.in;
  const View<const T>& out_gradient = given.out_gradient;
  const Region& region = given.region;
  const auto runs = channel_runs(region.channels, in, out_gradient);
  const Index run_count = static_cast<Index>(runs.size());
  const auto offsets = tap_offsets(shape, in);
  const Index most_taps = row_kernels<T>().depthwise_taps;
  const Index groups = (shape.taps() + most_taps - 1) / most_taps;
  parallel_for({0, run_count}, {0, groups}, [&](Index i, Index group) {
    const Range& run = runs[static_cast<std::size_t>(i)];
    const Index first_tap = shape.taps() * group / groups;
    const Index taps = shape.taps() * (group + 1) / groups - first_tap;
    alignas(kAlignment) std::array<T, kMostRowTaps * kMostChannels> sums{};
    for (Index n = region.images.begin; n < region.images.end; ++n) {
      row_kernels<T>().depthwise_sums(
          {line_start(in,
                      run,
                      n,
                      region.rows.begin * shape.stride.rows - shape.padding.rows,
                      region.cols.begin * shape.stride.cols - shape.padding.cols),
           in.row_stride() * shape.stride.rows,
           in.block * shape.stride.cols,
           line_start(out_gradient, run, n, region.rows.begin, region.cols.begin),
           out_gradient.row_stride(),
           out_gradient.block,
           region.rows.size(),
           region.cols.size(),
           channels_of_block(run, in, out_gradient),
           offsets.data() + first_tap,
           sums.data()},
          taps);
    }
    T* to = given.weights(shape.taps()) + (run.begin - region.channels.begin) * shape.taps();
    given.put_transposed()(
        {sums.data(), kMostChannels, to + first_tap, shape.taps()}, taps, run.size());
  });
}

template void DepthwiseKernel::forward(const ForwardArguments<float>&) const;
template void DepthwiseKernel::backward_data(const BackwardDataArguments<float>&) const;
template void DepthwiseKernel::backward_weights(const BackwardWeightsArguments<float>&) const;
template void DepthwiseKernel::forward(const ForwardArguments<double>&) const;
template void DepthwiseKernel::backward_data(const BackwardDataArguments<double>&) const;
template void DepthwiseKernel::backward_weights(const BackwardWeightsArguments<double>&) const;

}  // namespace tessera::engine
