#include "engine/ops/window_rows.h"

#include "engine/ops/direct_lanes.h"
#include "engine/ops/met_taps.h"
#include "partitioner/errors.h"

namespace engine {

namespace {

using partitioner::intersect;

constexpr Index kMostTaps = 8;  // of a row of a window
constexpr Index kMostWindowLanes = kMostTaps * kNarrowLanes;
constexpr Index kMostPixels = 16;
constexpr Index kMostWeights = Index{1} << 16U;  // more would not stay in a near cache

// Vectors of a row of a window: whole ones, and perhaps a narrow one.
Index vectors_of(const ConvolutionShape& shape) {
  return (shape.size * kNarrowLanes + kLanes - 1) / kLanes;
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
                          window_cells(shape, region.rows),
                          window_cells(shape, region.cols)})) {
    partitioner::expects(
        gradient_.block == kNarrowLanes && gradient_.region.channels == input_.channels,
        "a narrow block holds all channels");
    for (Index k = region.channels.begin; k < region.channels.end; ++k) {
      offsets_.push_back(read_.channel_offset(k));
    }
  }

  // Weights (row of the window, vector, filter, kLanes), of (filters, C, F, F).
  void pack(const T* weight) {
    std::fill_n(weights_, window_rows_workspace(shape_, filters()), T{});
    for (Index k = 0; k < filters(); ++k) {
      for (Index c = 0; c < shape_.channels; ++c) {
        for (Index tap = 0; tap < shape_.taps(); ++tap) {
          const Index lane = tap % shape_.size * kNarrowLanes + c;
          const Index vector = tap / shape_.size * vectors_of(shape_) + lane / kLanes;
          weights_[(vector * filters() + k) * kLanes + lane % kLanes] =
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
      std::fill_n(cells, input_.cols.size() * kNarrowLanes, T{});
    }
    const Index most =
        std::min({lane_kernels<T>().sum_pixels, lane_kernels<T>().narrow_pixels, kMostPixels});
    const MetTaps met = met_taps(shape_, row, region_.rows);
    for (Index i = 0; i < met.count; ++i) {
      const T* weights =
          weights_ + (met.tap + i * shape_.stride) * vectors_of(shape_) * filters() * kLanes;
      for_each_run(region_.cols.size(), most, [&](Index begin, Index pixels) {
        const Index col = region_.cols.begin + begin;
        add_windows(read_.cell(n, met.out - i, col), weights, col, pixels, cells);
      });
    }
  }

  // What the windows of `pixels` outputs from column `col` on get, to a row of cells.
  void add_windows(const T* outputs, const T* weights, Index col, Index pixels, T* cells) const {
    alignas(kAlignment) std::array<T, static_cast<std::size_t>(kMostPixels * kMostWindowLanes)>
        sums;
    sum_windows(outputs, weights, pixels, sums.data());
    const Index window = col * shape_.stride - shape_.padding;  // where the first begins
    const Range met =
        intersect(Range{window, window + (pixels - 1) * shape_.stride + shape_.size}, input_.cols);
    WindowSums<T> job;
    job.sums = sums.data();
    job.sums_step = kMostWindowLanes;
    job.pixels = pixels;
    job.stride = shape_.stride;
    job.size = shape_.size;
    job.first = met.begin - window;
    job.end = met.end - window;
    job.cells = cells + (met.begin - input_.cols.begin) * kNarrowLanes;
    lane_kernels<T>().add_windows(job);
  }

  // Assigns sums (pixels, kMostWindowLanes).
  void sum_windows(const T* outputs, const T* weights, Index pixels, T* sums) const {
    WeightedSum<T> job;
    job.in = outputs;
    job.in_step = read_.block;
    job.tap_count = 1;
    job.offsets = offsets_.data();
    job.terms = filters();
    job.weights_block = filters() * kLanes;
    job.start = kZeroStart<T>.values;
    job.sums_step = kMostWindowLanes;
    job.sums_block = kLanes;
    const Index whole = shape_.size * kNarrowLanes / kLanes;
    for_each_run(whole, lane_kernels<T>().sum_blocks, [&](Index vector, Index blocks) {
      const Tap<T> of_vector{0, weights + vector * job.weights_block};
      job.taps = &of_vector;
      job.sums = sums + vector * kLanes;
      lane_kernels<T>().weighted_sum(job, pixels, blocks);
    });
    if (whole < vectors_of(shape_)) {
      const Tap<T> of_vector{0, weights + whole * job.weights_block};
      job.taps = &of_vector;
      job.sums = sums + whole * kLanes;
      lane_kernels<T>().narrow_sum(job, pixels);
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
  return shape.groups == 1 && partitioner::channel_block(shape.channels) == kNarrowLanes &&
         shape.size > 1 && shape.size <= kMostTaps &&
         window_rows_workspace(shape, shape.filters) <= kMostWeights;
}

Index window_rows_workspace(const ConvolutionShape& shape, Index filters) {
  return shape.size * vectors_of(shape) * filters * kLanes;
}

template <class T>
void window_rows_backward_data(const ConvolutionShape& shape,
                               View<const T> out_gradient,
                               const Filters<T>& filters,
                               const Region& region,
                               const InputGradient<T>& in_gradient,
                               T* workspace) {
  WindowRows<T> rows(shape, out_gradient, region, in_gradient, workspace);
  rows.pack(filters.weight + (region.channels.begin - filters.first) * shape.row());
  rows.run();
}

template void window_rows_backward_data<float>(const ConvolutionShape&,
                                               View<const float>,
                                               const Filters<float>&,
                                               const Region&,
                                               const InputGradient<float>&,
                                               float*);
template void window_rows_backward_data<double>(const ConvolutionShape&,
                                                View<const double>,
                                                const Filters<double>&,
                                                const Region&,
                                                const InputGradient<double>&,
                                                double*);

}  // namespace engine
