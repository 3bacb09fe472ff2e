#include <cstring>

#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/met_taps.h"
#include "engine/ops/convolution/window_rows.h"

namespace tessera::engine {

namespace {

constexpr Index kChunkTaps = 12;  // of a chunk of weights: the others are those of enough filters
constexpr Index kFrameBytes = Index{4} << 20U;  // of output gradient copied at once

// Cells that the frame around an output gradient adds on each side, for windows that reach over its
// edge.
Index frame_cols(const ConvolutionShape& shape) {
  return (shape.cols().extent() - 1) / shape.stride.cols;
}

Region framed(const ConvolutionShape& shape, const Region& region, Index images) {
  Region result = region;
  result.images.end = result.images.begin + images;
  result.cols = {region.cols.begin - frame_cols(shape), region.cols.end + frame_cols(shape)};
  return result;
}

// How much of an output gradient is copied at once: some images, or some rows of one.
struct FrameSize {
  Index images = 1;
  Index in_rows = 0;   // of the input that are computed from the copy
  Index out_rows = 0;  // that these may meet

  FrameSize(const ConvolutionShape& shape, const Region& output, Index scalar_bytes) {
    const Index image = blocked_volume(framed(shape, output, 1)) * scalar_bytes;
    images = std::clamp<Index>(kFrameBytes / std::max<Index>(image, 1), 1, output.images.size());
    const Index window_rows = shape.rows().extent();
    const Index all_rows = output.rows.size() * shape.stride.rows + window_rows;
    const Index row = std::max<Index>(image / std::max<Index>(output.rows.size(), 1), 1);
    in_rows = image <= kFrameBytes
                  ? all_rows
                  : std::clamp<Index>(
                        (kFrameBytes / row - 1) * shape.stride.rows - window_rows + 2, 1, all_rows);
    out_rows = std::min((in_rows + window_rows - 2) / shape.stride.rows + 1, output.rows.size());
  }
};

// Whether windows reach over the edge of an output gradient: else there is no need to copy it.
bool has_frame(const ConvolutionShape& shape) {
  return frame_cols(shape) > 0;
}

// Backward to the data, one batch of images at a time.
template <class T>
class BackwardData {
 public:
  BackwardData(const ConvolutionShape& shape,
               const Region& region,
               const Filters<T>& filters,
               const InputGradient<T>& gradient,
               T* frame)
      : shape_(shape),
        region_(region),
        filters_(filters),
        gradient_(gradient.cells),
        assign_(gradient.assign),
        frame_(frame) {
    const Index first_group = region.channels.begin / shape.group_filters();
    const Index last_group = (region.channels.end - 1) / shape.group_filters();
    input_ = intersect(
        gradient.map,
        {region.images,
         {first_group * shape.group_channels(), (last_group + 1) * shape.group_channels()},
         window_cells(shape.rows(), region.rows),
         window_cells(shape.cols(), region.cols)});
    channel_blocks_ = channel_blocks_of(input_.channels, shape.group_channels());
    runs_ = block_runs(channel_blocks_, block_kernels<T>().sum_blocks);
    for (Index row = input_.rows.begin; row < input_.rows.end; ++row) {
      row_taps_.push_back(met_taps(shape.rows(), row, region.rows));
    }
    const Range cols = framed(shape, region, 1).cols;
    for (Index phase = 0; phase < std::min(shape.stride.cols, input_.cols.size()); ++phase) {
      col_taps_.push_back(met_taps(shape.cols(), input_.cols.begin + phase, cols));
    }
  }

  void run(View<const T> out_gradient) {
    if (!has_frame(shape_)) {
      read_ = out_gradient;
      add(region_.images, input_.rows);
      return;
    }
    const FrameSize size(shape_, region_, static_cast<Index>(sizeof(T)));
    for (Index n = region_.images.begin; n < region_.images.end; n += size.images) {
      for (Index row = input_.rows.begin; row < input_.rows.end; row += size.in_rows) {
        const Range images{n, std::min(n + size.images, region_.images.end)};
        const Range rows{row, std::min(row + size.in_rows, input_.rows.end)};
        const Range outs = met_by(rows);
        if (!outs.empty()) {
          copy_frame(out_gradient, images, outs);
          add(images, rows);
        }
      }
    }
  }

 private:
  // The rows of the region that rows of the input meet.
  [[nodiscard]] Range met_by(const Range& rows) const {
    const WindowAxis axis = shape_.rows();
    const auto floor = [&axis](Index cell) {
      return cell >= 0 ? cell / axis.stride : -((axis.stride - 1 - cell) / axis.stride);
    };
    const Index first = rows.begin + axis.padding - axis.extent();  // the last row that ends before
    return intersect(region_.rows, {floor(first) + 1, floor(rows.end - 1 + axis.padding) + 1});
  }

  // The filters of a group that the region has.
  [[nodiscard]] Range filters_of(Index group) const {
    return intersect(Range{group * shape_.group_filters(), (group + 1) * shape_.group_filters()},
                     region_.channels);
  }

  // The frame of zeros spares the inner loop any question about edges. It is written once per pass:
  // copies keep off it.
  void copy_frame(View<const T> out_gradient, const Range& images, const Range& outs) {
    View<T> copy{
        frame_, framed(shape_, region_, images.size()), channel_block(region_.channels.size())};
    copy.region.images = images;
    copy.region.rows = outs;
    read_ = copy;
    parallel_for(images, outs, [&](Index n, Index row) {
      Region line = region_;
      line.images = {n, n + 1};
      line.rows = {row, row + 1};
      copy_line(out_gradient, line, copy);
    });
  }

  void copy_line(View<const T> from, const Region& line, const View<T>& copy) const {
    const Index n = line.images.begin;
    const Index row = line.rows.begin;
    const Index block = copy.block;
    const Index frame = frame_cols(shape_) * block;
    const bool alike = from.block == block && line.channels.begin == from.region.channels.begin &&
                       line.channels == from.region.channels;
    for (Index c = line.channels.begin; c < line.channels.end; c += block) {
      T* to = copy.cell(n, row, copy.region.cols.begin) + copy.channel_offset(c);
      std::fill_n(to, frame, T{});
      std::fill_n(to + frame + line.cols.size() * block, frame, T{});
      to += frame;
      if (alike) {
        std::copy_n(from.cell(n, row, line.cols.begin) + from.channel_offset(c),
                    line.cols.size() * block,
                    to);
        continue;
      }
      for (Index lane = 0; lane < block; ++lane) {
        const bool inside = c + lane < line.channels.end;
        const T* cells =
            inside ? from.cell(n, row, line.cols.begin) + from.channel_offset(c + lane) : nullptr;
        for (Index col = 0; col < line.cols.size(); ++col) {
          to[col * block + lane] = inside ? cells[col * from.block] : T{};
        }
      }
    }
  }

  void add(const Range& images, const Range& rows) {
    const Index lines = images.size() * rows.size();
    const Index run_count = static_cast<Index>(runs_.size());
    constexpr Index kScalar = sizeof(T);
    const Index row =
        read_.region.channels.size() * read_.row_stride() / read_.block / shape_.stride.rows;
    const LineBytes line{
        row * kScalar / shape_.groups,
        block_kernels<T>().sum_blocks * kBlockChannels * input_.cols.size() * kScalar};
    const Index parts = parts_of(lines, line, run_count);
    for_each_part_and_run(parts, run_count, [&](Index part, Index i) {
      add_run(runs_[static_cast<std::size_t>(i)],
              {images.begin, rows, {lines * part / parts, lines * (part + 1) / parts}});
    });
  }

  // Weights that are packed at once: those of some taps of some filters, (taps, filters,
  // kBlockChannels).
  struct Chunk {
    Range taps;
    Range filters;

    [[nodiscard]] Index terms() const { return taps.size() * filters.size(); }
  };

  // Some of the lines of all images from `first_image` on, numbered one after the other; an image
  // has `rows` of the input.
  struct Lines {
    Index first_image = 0;
    Range rows;
    Range numbers;
  };

  void add_run(const BlockRun& run, const Lines& lines) const {
    const Range ks = filters_of(channel_blocks_[static_cast<std::size_t>(run.first)].group);
    const RunPixels<T> sums(gradient_, channel_blocks_.data() + run.first, run.blocks);
    alignas(kAlignment) PackedWeights<T> weights;
    for_each_run(shape_.taps(), kChunkTaps, [&](Index tap, Index tap_count) {
      for_each_run(ks.size(), kChunkTerms / tap_count, [&](Index k, Index count) {
        const Chunk chunk{{tap, tap + tap_count}, {ks.begin + k, ks.begin + k + count}};
        pack(run, chunk, weights.data());
        add_chunk(chunk, lines, weights.data(), assign_ && k == 0, sums);
      });
    });
  }

  void add_chunk(const Chunk& chunk,
                 const Lines& lines,
                 const T* weights,
                 bool assign,
                 const RunPixels<T>& sums) const {
    const std::vector<Index> offsets = channel_offsets(chunk.filters);
    std::vector<Tap<T>> taps;
    taps.reserve(static_cast<std::size_t>(chunk.taps.size()));
    WeightedSum<T> job;
    job.in_step = read_.block;
    job.offsets = offsets.data();
    job.terms = chunk.filters.size();
    job.weights_block = chunk.terms() * kBlockChannels;
    job.start = assign ? kZeroStart<T>.values : nullptr;
    for (Index line = lines.numbers.begin; line < lines.numbers.end; ++line) {
      const Index n = lines.first_image + line / lines.rows.size();
      const Index row = lines.rows.begin - input_.rows.begin + line % lines.rows.size();
      for (std::size_t phase = 0; phase < col_taps_.size(); ++phase) {
        const MetTaps& met = row_taps_[static_cast<std::size_t>(row)];
        find_taps(chunk, met, col_taps_[phase], weights, taps);
        if (!taps.empty()) {
          job.taps = taps.data();
          job.tap_count = static_cast<Index>(taps.size());
          add_cells(sums, n, row, phase, job);
        }
      }
    }
  }

  // Filter by filter: their weights for neighbouring channels lie side by side, and so do those
  // that the next run packs, if the group has more channels.
  void pack(const BlockRun& run, const Chunk& chunk, T* to) const {
    const ChannelBlock* channel_blocks = channel_blocks_.data() + run.first;
    const Index channels =
        channel_blocks[run.blocks - 1].channels.end - channel_blocks->channels.begin;
    if (channels < run.blocks * kBlockChannels) {
      std::fill_n(to, run.blocks * chunk.terms() * kBlockChannels, T{});
    }
    const Index first =
        channel_blocks->channels.begin - channel_blocks->group * shape_.group_channels();
    const Index next = std::min(channels, shape_.group_channels() - first - channels);
    for (Index k = 0; k < chunk.filters.size(); ++k) {
      const T* from = filters_.weight + (chunk.filters.begin + k - filters_.first) * shape_.row() +
                      first * shape_.taps() + chunk.taps.begin;
      ask_for_row(from + channels * shape_.taps(), next * shape_.taps());
      for (Index block = 0; block < run.blocks; ++block) {
        T* at = to + (block * chunk.terms() + k) * kBlockChannels;
        if (shape_.taps() == 1 && channels == run.blocks * kBlockChannels) {
          std::memcpy(at, from + block * kBlockChannels, kBlockChannels * sizeof(T));
        } else {
          block_kernels<T>().transpose({from + block * kBlockChannels * shape_.taps(),
                                        shape_.taps(),
                                        at,
                                        chunk.filters.size() * kBlockChannels},
                                       channel_blocks[block].channels.size(),
                                       chunk.taps.size());
        }
      }
    }
  }

  // Offsets of filters in the output's gradient.
  [[nodiscard]] std::vector<Index> channel_offsets(const Range& ks) const {
    std::vector<Index> offsets;
    for (Index k = ks.begin; k < ks.end; ++k) {
      offsets.push_back(read_.channel_offset(k));
    }
    return offsets;
  }

  // The chunk's taps that read a cell, from the output that reads it first.
  void find_taps(const Chunk& chunk,
                 const MetTaps& rows,
                 const MetTaps& cols,
                 const T* weights,
                 std::vector<Tap<T>>& taps) const {
    taps.clear();
    const TapStep down = tap_step(shape_.rows());
    const TapStep across = tap_step(shape_.cols());
    for (Index i = 0; i < rows.count; ++i) {
      for (Index j = 0; j < cols.count; ++j) {
        const Index tap =
            (rows.tap + i * down.taps) * shape_.size.cols + cols.tap + j * across.taps;
        if (tap >= chunk.taps.begin && tap < chunk.taps.end) {
          taps.push_back(
              {-i * down.outs * read_.row_stride() - j * across.outs * read_.block,
               weights + (tap - chunk.taps.begin) * chunk.filters.size() * kBlockChannels});
        }
      }
    }
  }

  // The cells of a row that are `stride` apart from column `phase` on: the same taps meet them all.
  void add_cells(
      const RunPixels<T>& sums, Index n, Index row, std::size_t phase, WeightedSum<T>& job) const {
    const Index first_col = input_.cols.begin + static_cast<Index>(phase);
    const Index count = (input_.cols.end - first_col + shape_.stride.cols - 1) / shape_.stride.cols;
    const T* read =
        read_.cell(n, row_taps_[static_cast<std::size_t>(row)].out, col_taps_[phase].out);
    T* cells = gradient_.cell(n, input_.rows.begin + row, first_col);
    const Index step = shape_.stride.cols * gradient_.block;
    for_each_run(count, sums.most_pixels(), [&](Index begin, Index pixels) {
      job.in = read + begin * read_.block;
      sums.sum(job, cells + begin * step, step, pixels);
    });
  }

  const ConvolutionShape& shape_;
  Region region_;
  const Filters<T>& filters_;
  View<T> gradient_;
  bool assign_;
  T* frame_;
  Region input_;
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<MetTaps> row_taps_;  // of the input's rows
  std::vector<MetTaps> col_taps_;  // of its first columns, a stride of them
  View<const T> read_;             // the output's gradient, or its framed copy
};

}  // namespace

// All taps of a cell are in one chunk, of which the first filters' begins, and each cell has some.
bool DirectKernel::assigns() const {
  return has_window_rows(shape) ||
         (shape.taps() <= kChunkTaps && shape.dilation == 1 &&
          shape.size.rows >= shape.stride.rows && shape.size.cols >= shape.stride.cols);
}

Index DirectKernel::workspace(const Region& output) const {
  if (!output.empty() && has_window_rows(shape)) {
    return window_rows_workspace(shape, output.channels.size());
  }
  if (output.empty() || !has_frame(shape)) {
    return 0;
  }
  const FrameSize size(shape, output, static_cast<Index>(sizeof(float)));
  Region part = framed(shape, output, size.images);
  part.rows.end = part.rows.begin + size.out_rows;
  return blocked_volume(part);
}

template <class T>
void DirectKernel::backward_data(const BackwardDataArguments<T>& given) const {
  if (has_window_rows(shape)) {
    window_rows_backward_data(shape, given);
    return;
  }
  const InputGradient<T>& gradient = given.in_gradient;
  const Region& region = given.region;
  const bool whole = gradient.map.rows == region.rows && gradient.map.cols == region.cols;
  const Index at_once =
      whole ? rows_of_pixels(shape, region, given.out_gradient, View<const T>(gradient.cells)) : 1;
  BackwardData<T>(shape,
                  joined(region, at_once),
                  given.filters,
                  {joined(gradient.cells, at_once), joined(gradient.map, at_once), gradient.assign},
                  given.workspace)
      .run(joined(given.out_gradient, at_once));
}

template void DirectKernel::backward_data(const BackwardDataArguments<float>&) const;
template void DirectKernel::backward_data(const BackwardDataArguments<double>&) const;

}  // namespace tessera::engine
