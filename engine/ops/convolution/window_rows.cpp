#include "engine/ops/convolution/window_rows.h"

#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/met_taps.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kMostWindowTaps = 8;  // of a row of a window
constexpr Index kMostWindowElements =
    kMostWindowTaps * kNarrowChannels;  // also of what is read for the last
constexpr Index kMostPixels = 16;
constexpr Index kMostWeights = Index{1} << 16U;  // more would not stay in a near cache

// Numbers that a row of a window gets: those of a tap's channels, then those of the next one's.
Index window_elements(const ConvolutionShape& shape) {
  return shape.size.cols * shape.channels;
}

Index vectors_of(const ConvolutionShape& shape) {
  return (window_elements(shape) + kBlockChannels - 1) / kBlockChannels;
}

// Vectors in a row of windows; the last one is computed by half where that is enough.
Index whole_vectors(const ConvolutionShape& shape) {
  return (window_elements(shape) + kBlockChannels - kNarrowChannels - 1) / kBlockChannels;
}

template <class T>
class WindowRows {
 public:
  WindowRows(const ConvolutionShape& shape,
             View<const T> out_gradient,
             const Region& region,
             const InputGradient<T>& in_gradient,
             T* weights)
      : shape_(shape),
        read_(out_gradient),
        region_(region),
        gradient_(in_gradient.cells),
        assign_(in_gradient.assign),
        weights_(weights),
        input_(intersect(in_gradient.map,
                         {region.images,
                          {0, shape.channels},
                          window_cells(shape.rows(), region.rows),
                          window_cells(shape.cols(), region.cols)})) {
    expects(gradient_.block == kNarrowChannels && gradient_.region.channels == input_.channels,
            "a narrow block holds all channels");
    for (Index k = region.channels.begin; k < region.channels.end; ++k) {
      offsets_.push_back(read_.channel_offset(k));
    }
  }

  // Weights (row of the window, vector, filter, kBlockChannels), of (filters, C, FH, FW).
  void pack(const T* weight) {
    std::fill_n(weights_, window_rows_workspace(shape_, filters()), T{});
    for (Index k = 0; k < filters(); ++k) {
      for (Index c = 0; c < shape_.channels; ++c) {
        for (Index tap = 0; tap < shape_.taps(); ++tap) {
          const Index lane = tap % shape_.size.cols * shape_.channels + c;
          const Index vector = tap / shape_.size.cols * vectors_of(shape_) + lane / kBlockChannels;
          weights_[(vector * filters() + k) * kBlockChannels + lane % kBlockChannels] =
              weight[k * shape_.row() + c * shape_.taps() + tap];
        }
      }
    }
  }

  void run() const {
    parallel_for(input_.images, input_.rows, [&](Index n, Index row) { add_row(n, row); });
  }

 private:
  [[nodiscard]] Index filters() const { return region_.channels.size(); }

  void add_row(Index n, Index row) const {
    T* cells = gradient_.cell(n, row, input_.cols.begin);
    if (assign_) {
      std::fill_n(cells, input_.cols.size() * kNarrowChannels, T{});
    }
    const MetTaps met = met_taps(shape_.rows(), row, region_.rows);
    if (met.count == 0) {
      return;
    }
    std::array<Tap<T>, static_cast<std::size_t>(kMostWindowTaps)> rows;
    for (Index i = 0; i < met.count; ++i) {
      const Index vectors = (met.tap + i * shape_.stride.rows) * vectors_of(shape_);
      rows[static_cast<std::size_t>(i)] = {-i * read_.row_stride(),
                                           weights_ + vectors * filters() * kBlockChannels};
    }
    WeightedSum<T> job;
    job.in_step = read_.block;
    job.taps = rows.data();
    job.tap_count = met.count;
    job.offsets = offsets_.data();
    job.terms = filters();
    job.weights_block = filters() * kBlockChannels;
    job.start = kZeroStart<T>.values;
    job.sums_step = kMostWindowElements;
    job.sums_block = kBlockChannels;
    for_each_run(region_.cols.size(), most_pixels(), [&](Index begin, Index pixels) {
      const Index col = region_.cols.begin + begin;
      job.in = read_.cell(n, met.out, col);
      add_windows(job, col, pixels, cells);
    });
  }

  [[nodiscard]] static Index most_pixels() {
    return std::min({block_kernels<T>().sum_pixels, block_kernels<T>().narrow_pixels, kMostPixels});
  }

  // What the windows of `pixels` outputs from column `col` on get, to a row of cells. `rows`: the
  // sums of the first vector, but for where they go.
  void add_windows(const WeightedSum<T>& rows, Index col, Index pixels, T* cells) const {
    alignas(kAlignment) T sums[kMostPixels * kMostWindowElements];
    sum_windows(rows, pixels, sums);
    const WindowAxis axis = shape_.cols();
    const Index window = col * axis.stride - axis.padding;  // where the first begins
    const Range met =
        intersect(Range{window, window + (pixels - 1) * axis.stride + axis.size}, input_.cols);
    WindowSums<T> job;
    job.sums = sums;
    job.sums_step = kMostWindowElements;
    job.cell_step = shape_.channels;
    job.pixels = pixels;
    job.stride = axis.stride;
    job.size = axis.size;
    job.first = met.begin - window;
    job.end = met.end - window;
    job.cells = cells + (met.begin - input_.cols.begin) * kNarrowChannels;
    block_kernels<T>().add_windows(job);
  }

  // Assigns sums (pixels, kMostWindowElements).
  void sum_windows(const WeightedSum<T>& rows, Index pixels, T* sums) const {
    std::array<Tap<T>, static_cast<std::size_t>(kMostWindowTaps)> taps;
    const auto job_of = [&](Index vector) {
      WeightedSum<T> job = rows;
      for (std::size_t i = 0; i < static_cast<std::size_t>(rows.tap_count); ++i) {
        taps[i] = {rows.taps[i].offset, rows.taps[i].weights + vector * rows.weights_block};
      }
      job.taps = taps.data();
      job.sums = sums + vector * kBlockChannels;
      return job;
    };
    const Index whole = whole_vectors(shape_);
    for_each_run(whole, block_kernels<T>().sum_blocks, [&](Index vector, Index blocks) {
      block_kernels<T>().weighted_sum(job_of(vector), pixels, blocks);
    });
    if (whole < vectors_of(shape_)) {
      block_kernels<T>().narrow_sum(job_of(whole), pixels);
    }
  }

  const ConvolutionShape& shape_;
  View<const T> read_;
  Region region_;
  View<T> gradient_;
  bool assign_;
  T* weights_;
  Region input_;
  std::vector<Index> offsets_;  // of filters in the output's gradient
};

}  // namespace

bool has_window_rows(const ConvolutionShape& shape) {
  return shape.groups == 1 && shape.dilation == 1 &&
         channel_block(shape.channels) == kNarrowChannels && shape.taps() > 1 &&
         shape.size.rows <= kMostWindowTaps && shape.size.cols <= kMostWindowTaps &&
         window_rows_workspace(shape, shape.filters) <= kMostWeights;
}

Index window_rows_workspace(const ConvolutionShape& shape, Index filters) {
  return shape.size.rows * vectors_of(shape) * filters * kBlockChannels;
}

template <class T>
void window_rows_backward_data(const ConvolutionShape& shape,
                               const BackwardDataArguments<T>& given) {
  const Filters<T>& filters = given.filters;
  WindowRows<T> rows(shape, given.out_gradient, given.region, given.in_gradient, given.workspace);
  rows.pack(filters.weight + (given.region.channels.begin - filters.first) * shape.row());
  rows.run();
}

template void window_rows_backward_data(const ConvolutionShape&,
                                        const BackwardDataArguments<float>&);
template void window_rows_backward_data(const ConvolutionShape&,
                                        const BackwardDataArguments<double>&);

}  // namespace tessera::engine
