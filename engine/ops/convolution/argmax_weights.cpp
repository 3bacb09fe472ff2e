#include "engine/ops/convolution/argmax_weights.h"

#include <algorithm>

#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/pool/pool_windows.h"
#include "partitioner/base/errors.h"

namespace tessera::engine {

namespace {

constexpr Index kCopiedCells = Index{1} << 13U;  // numbers of the input that are copied at once
constexpr Index kMostParts = 5;
constexpr Index kReadBeyond = kMostParts * kNarrowChannels;
constexpr Index kMostOffsets = 256;
// Windows are summed in pieces, however many threads there are: of some windows at least, for the
// sums of all pieces are added up in the end.
constexpr Index kMostPieces = 16;
constexpr Index kPieceWindows = 200;

// Parts of kNarrowChannels that a row of taps takes, as ArgmaxSum has them.
Index parts_of_row(Index taps) {
  const Index parts = (taps + kNarrowChannels - 1) / kNarrowChannels;
  return parts == 4 ? 5 : parts;
}

template <class T>
class ArgmaxWeights {
 public:
  ArgmaxWeights(const ConvolutionShape& shape,
                View<const T> in,
                const ArgmaxGradient<T>& argmax_gradient,
                const Region& region)
      : shape_(shape),
        pool_(argmax_gradient.site.pool),
        in_(in),
        argmax_gradient_(argmax_gradient),
        region_(region),
        rows_(windows_of(pool_.rows(), region.rows, argmax_gradient.site.region.rows)),
        cols_(windows_of(pool_.cols(), region.cols, argmax_gradient.site.region.cols)),
        parts_(parts_of_row(shape.size.cols * in.block)),
        filter_sums_(shape.size.rows * ((parts_ + 1) / 2) * kBlockChannels) {
    expects(parts_ <= kMostParts && most_cells(1) > 0, "what a row of taps reads is few numbers");
  }

  // Adds to the gradients of the region's filters.
  void add_to(T* weight_gradient) const {
    if (rows_.empty() || cols_.empty()) {
      return;
    }
    const Index lines = region_.images.size() * rows_.size();
    const Index most = std::min(kMostPieces, lines);
    const Index pieces = std::clamp<Index>(lines * cols_.size() / kPieceWindows, 1, most);
    const Index of_piece = filters() * filter_sums_;
    Array<T> sums(pieces * of_piece);
    parallel_for({0, pieces}, [&](Index piece) {
      sum({lines * piece / pieces, lines * (piece + 1) / pieces}, sums.data() + piece * of_piece);
    });
    for (Index piece = 1; piece < pieces; ++piece) {
      for (Index i = 0; i < of_piece; ++i) {
        sums[i] += sums[piece * of_piece + i];
      }
    }
    add_sums(sums.data(), weight_gradient);
  }

 private:
  [[nodiscard]] Index filters() const { return region_.channels.size(); }

  // The windows among `windows` that have cells of the range.
  [[nodiscard]] static Range windows_of(const WindowAxis& axis,
                                        const Range& cells,
                                        const Range& windows) {
    const auto window_of = [&](Index cell) { return (cell + axis.padding) / axis.stride; };
    return intersect({window_of(cells.begin), window_of(cells.end - 1) + 1}, windows);
  }

  // Cells of the input from the first tap of an output to the last one of the output that is
  // `outputs` - 1 further on.
  [[nodiscard]] static Index inputs_of(const WindowAxis& axis, Index outputs) {
    return (outputs - 1) * axis.stride + axis.size;
  }
  // So many windows side by side may be copied at once, of `rows` rows of windows.
  [[nodiscard]] Index most_cells(Index rows) const {
    const Index row_cells =
        kCopiedCells / (inputs_of(shape_.rows(), rows * pool_.size) * in_.block);
    return (row_cells - shape_.size.cols) / (pool_.size * shape_.stride.cols);
  }

  // Lines are rows of windows of all images, one after the other.
  void sum(const Range& lines, T* sums) const {
    for (Index n = region_.images.begin; n < region_.images.end; ++n) {
      const Index before = rows_.begin - (n - region_.images.begin) * rows_.size();
      const Range rows = intersect(rows_, {lines.begin + before, lines.end + before});
      for_each_window_run(
          pool_.rows(), rows, region_.rows, [&](Index row, Index count, const Range&) {
            sum_rows(n, {row, row + count}, sums);
          });
    }
  }

  // Sums whole windows, or one row of windows that the region clips.
  void sum_rows(Index n, const Range& rows, T* sums) const {
    for_each_run(rows.size(), rows_at_once(), [&](Index begin, Index count) {
      const Range some{rows.begin + begin, rows.begin + begin + count};
      for_each_window_run(
          pool_.cols(), cols_, region_.cols, [&](Index col, Index windows, const Range&) {
            for_each_run(windows, most_cells(count), [&](Index first, Index together) {
              add_block(n, some, {col + first, col + first + together}, sums);
            });
          });
    });
  }

  // Rows of windows that are copied at once: as many as leave room for all columns.
  [[nodiscard]] Index rows_at_once() const {
    Index rows = 1;
    while (rows < rows_.size() && most_cells(rows + 1) >= cols_.size()) {
      ++rows;
    }
    return rows;
  }

  // The outputs of some windows, in one dimension, that the region has.
  [[nodiscard]] static Range outputs_of(const WindowAxis& axis,
                                        const Range& windows,
                                        const Range& cells) {
    return intersect(
        {window_begin(axis, windows.begin), window_begin(axis, windows.end - 1) + axis.size},
        cells);
  }

  // Windows that the region clips are alone in that dimension.
  void add_block(Index n, const Range& rows, const Range& cols, T* sums) const {
    const Range out_rows = outputs_of(pool_.rows(), rows, region_.rows);
    const Range out_cols = outputs_of(pool_.cols(), cols, region_.cols);
    const Index in_row = inputs_of(shape_.cols(), out_cols.size()) * in_.block;
    alignas(kAlignment) T copy[kCopiedCells + kReadBeyond];
    copy_inputs(n, out_rows, out_cols, copy);
    Index places[kMostOffsets];
    for (Index argmax = 0; argmax < pool_.size * pool_.size; ++argmax) {
      const Index row = window_begin(pool_.rows(), rows.begin) + argmax / pool_.size;
      const Index col = window_begin(pool_.cols(), cols.begin) + argmax % pool_.size;
      const bool inside = row >= out_rows.begin && row < out_rows.end && col >= out_cols.begin &&
                          col < out_cols.end;
      places[argmax] = inside ? (row - out_rows.begin) * shape_.stride.rows * in_row +
                                    (col - out_cols.begin) * shape_.stride.cols * in_.block
                              : -1;
    }
    ArgmaxSum<T> job;
    job.gradient_row = argmax_gradient_.gradient.row_stride();
    job.gradient_step = argmax_gradient_.gradient.block;
    job.argmax_row_step = argmax_gradient_.argmax.row_stride();
    job.argmax_step = argmax_gradient_.argmax.block;
    job.rows = rows.size();
    job.cols = cols.size();
    job.places = places;
    job.in = copy;
    job.in_windows = pool_.size * shape_.stride.rows * in_row;
    job.in_window = pool_.size * shape_.stride.cols * in_.block;
    job.in_row = in_row;
    job.tap_rows = shape_.size.rows;
    T gathered[kCopiedCells];  // each has cells of its own
    const ArgmaxOffset* offsets = argmax_gradient_.argmax.cell(n, rows.begin, cols.begin);
    for (Index k = 0; k < filters(); ++k) {
      const Index channel = region_.channels.begin + k;
      job.argmax = offsets + argmax_gradient_.argmax.channel_offset(channel);
      if (argmax_gradient_.kind == GradientOf::Windows) {
        job.gradient = argmax_gradient_.gradient.cell(n, rows.begin, cols.begin) +
                       argmax_gradient_.gradient.channel_offset(channel);
      } else {
        gather(n, channel, rows, cols, gathered);
        job.gradient = gathered;
        job.gradient_row = cols.size();
        job.gradient_step = 1;
      }
      job.sums = sums + k * filter_sums_;
      block_kernels<T>().argmax_sum(job, parts_);
    }
  }

  // Assigns, window by window, the gradient of its argmax.
  void gather(Index n, Index channel, const Range& rows, const Range& cols, T* to) const {
    const Index in_channel = argmax_gradient_.gradient.channel_offset(channel);
    const Index of_argmax = argmax_gradient_.argmax.channel_offset(channel);
    for (Index row = rows.begin; row < rows.end; ++row) {
      for (Index col = cols.begin; col < cols.end; ++col) {
        const Index argmax = argmax_gradient_.argmax.cell(n, row, col)[of_argmax];
        *to++ = argmax_gradient_.gradient.cell(
            n,
            window_begin(pool_.rows(), row) + argmax / pool_.size,
            window_begin(pool_.cols(), col) + argmax % pool_.size)[in_channel];
      }
    }
  }

  // What taps of the outputs read, row by row, and kReadBeyond numbers more.
  void copy_inputs(Index n, const Range& out_rows, const Range& out_cols, T* to) const {
    const Index row = out_rows.begin * shape_.stride.rows - shape_.padding.rows;
    const Index col = out_cols.begin * shape_.stride.cols - shape_.padding.cols;
    const Index numbers = inputs_of(shape_.cols(), out_cols.size()) * in_.block;
    for (Index r = 0; r < inputs_of(shape_.rows(), out_rows.size()); ++r) {
      std::copy_n(in_.cell(n, row + r, col), numbers, to);
      to += numbers;
    }
    std::fill_n(to, kReadBeyond, T{});
  }

  void add_sums(const T* sums, T* weights) const {
    const Index row = (parts_ + 1) / 2 * kBlockChannels;
    for (Index k = 0; k < filters(); ++k) {
      for (Index c = 0; c < shape_.channels; ++c) {
        T* to = weights + k * shape_.row() + c * shape_.taps();
        for (Index fh = 0; fh < shape_.size.rows; ++fh) {
          const T* from = sums + k * filter_sums_ + fh * row + c;
          for (Index fw = 0; fw < shape_.size.cols; ++fw) {
            to[fh * shape_.size.cols + fw] += from[fw * in_.block];
          }
        }
      }
    }
  }

  const ConvolutionShape& shape_;
  const MaxPool& pool_;
  View<const T> in_;
  const ArgmaxGradient<T>& argmax_gradient_;
  const Region& region_;
  Range rows_;  // of windows
  Range cols_;
  Index parts_;
  Index filter_sums_;  // numbers that the sums of a filter take
};

}  // namespace

template <class T>
void argmax_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             const ArgmaxGradient<T>& out_gradient,
                             const Region& region,
                             T* weight_gradient) {
  ArgmaxWeights<T>(shape, in, out_gradient, region).add_to(weight_gradient);
}

template void argmax_backward_weights<float>(const ConvolutionShape&,
                                             View<const float>,
                                             const ArgmaxGradient<float>&,
                                             const Region&,
                                             float*);
template void argmax_backward_weights<double>(const ConvolutionShape&,
                                              View<const double>,
                                              const ArgmaxGradient<double>&,
                                              const Region&,
                                              double*);

}  // namespace tessera::engine
