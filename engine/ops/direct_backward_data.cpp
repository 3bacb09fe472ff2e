#include "engine/ops/direct_lanes.h"

namespace engine {

namespace {

using partitioner::intersect;

constexpr Index kFrameBytes = Index{4} << 20U;  // of output gradient copied at once

// Cells that the frame around an output gradient adds on each side, for windows that reach over its
// edge.
Index frame_cols(const ConvolutionShape& shape) {
  return (shape.size - 1) / shape.stride;
}

Region framed(const ConvolutionShape& shape, const Region& region, Index images) {
  Region result = region;
  result.images.end = result.images.begin + images;
  result.cols = {region.cols.begin - frame_cols(shape), region.cols.end + frame_cols(shape)};
  return result;
}

template <class T>
Index images_at_once(const ConvolutionShape& shape, const Region& output) {
  const Index bytes =
      partitioner::blocked_volume(framed(shape, output, 1)) * static_cast<Index>(sizeof(T));
  return std::clamp<Index>(kFrameBytes / std::max<Index>(bytes, 1), 1, output.images.size());
}

// Backward to the data, one batch of images at a time.
template <class T>
class BackwardData {
 public:
  BackwardData(const ConvolutionShape& shape,
               const Region& region,
               const Region& map,
               Index first_filter,
               View<T> gradient,
               ConvolutionWorkspace<T>& workspace)
      : shape_(shape),
        region_(region),
        first_filter_(first_filter),
        gradient_(gradient),
        workspace_(workspace) {
    const Index first_group = region.channels.begin / shape.group_filters();
    const Index last_group = (region.channels.end - 1) / shape.group_filters();
    input_ = intersect(
        map,
        {region.images,
         {first_group * shape.group_channels(), (last_group + 1) * shape.group_channels()},
         reach(region.rows),
         reach(region.cols)});
    lanes_ = lanes_of(input_.channels, shape.group_channels());
    runs_ = lane_runs(lanes_, lane_kernels<T>().sum_blocks);
  }

  void run(View<const T> out_gradient, const T* weight) {
    pack(weight);
    const Index at_once = images_at_once<T>(shape_, region_);
    for (Index n = region_.images.begin; n < region_.images.end; n += at_once) {
      const Range images{n, std::min(n + at_once, region_.images.end)};
      copy_frame(out_gradient, images);
      add(images);
    }
  }

 private:
  [[nodiscard]] Range reach(const Range& out) const {
    return {out.begin * shape_.stride - shape_.padding,
            (out.end - 1) * shape_.stride - shape_.padding + shape_.size};
  }

  // The filters of a group that the region has.
  [[nodiscard]] Range filters(Index group) const {
    return intersect(Range{group * shape_.group_filters(), (group + 1) * shape_.group_filters()},
                     region_.channels);
  }

  // Where the packed weights of lane i begin: (taps, filters, kLanes).
  [[nodiscard]] T* packed(Index i) const { return workspace_.weights.data() + i * lane_weights(); }
  [[nodiscard]] Index lane_weights() const {
    return shape_.taps() * shape_.group_filters() * kLanes;
  }

  void pack(const T* weight) {
    const Index lane_count = static_cast<Index>(lanes_.size());
#pragma omp parallel for schedule(static)
    for (Index i = 0; i < lane_count; ++i) {
      const Lane& lane = lanes_[static_cast<std::size_t>(i)];
      const Range ks = filters(lane.group);
      T* out = packed(i);
      std::fill_n(out, shape_.taps() * ks.size() * kLanes, T{});
      for (Index k = ks.begin; k < ks.end; ++k) {
        for (Index c = lane.channels.begin; c < lane.channels.end; ++c) {
          const T* taps = weight + (k - first_filter_) * shape_.row() +
                          (c - lane.group * shape_.group_channels()) * shape_.taps();
          for (Index tap = 0; tap < shape_.taps(); ++tap) {
            out[(tap * ks.size() + k - ks.begin) * kLanes + c - lane.channels.begin] = taps[tap];
          }
        }
      }
    }
  }

  // The frame of zeros spares the inner loop any question about edges. It is written once a pass:
  // copies keep off it.
  void copy_frame(View<const T> out_gradient, const Range& images) {
    frame_ = {workspace_.gradient.data(),
              framed(shape_, region_, images.size()),
              partitioner::channel_block(region_.channels.size())};
    frame_.region.images = images;
    const Index rows = region_.rows.size();
#pragma omp parallel for collapse(2) schedule(static)
    for (Index n = images.begin; n < images.end; ++n) {
      for (Index row = 0; row < rows; ++row) {
        Region line = region_;
        line.images = {n, n + 1};
        line.rows = {region_.rows.begin + row, region_.rows.begin + row + 1};
        copy_line(out_gradient, line);
      }
    }
  }

  void copy_line(View<const T> from, const Region& line) {
    const Index n = line.images.begin;
    const Index row = line.rows.begin;
    const Index block = frame_.block;
    const Index frame = frame_cols(shape_) * block;
    const bool alike = from.block == block && line.channels.begin == from.region.channels.begin &&
                       line.channels == from.region.channels;
    for (Index c = line.channels.begin; c < line.channels.end; c += block) {
      T* to = frame_.cell(n, row, frame_.region.cols.begin) + frame_.channel_offset(c);
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

  void add(const Range& images) {
    const auto offsets = channel_offsets();
    const Index run_count = static_cast<Index>(runs_.size());
#pragma omp parallel for collapse(3) schedule(static)
    for (Index n = images.begin; n < images.end; ++n) {
      for (Index i = 0; i < run_count; ++i) {
        for (Index row = input_.rows.begin; row < input_.rows.end; ++row) {
          for (Index phase = 0; phase < std::min(shape_.stride, input_.cols.size()); ++phase) {
            const LaneRun& run = runs_[static_cast<std::size_t>(i)];
            add_row(n, run, row, phase, offsets[static_cast<std::size_t>(run.first)]);
          }
        }
      }
    }
  }

  // For each lane: offsets of its group's filters in the frame.
  [[nodiscard]] std::vector<std::vector<Index>> channel_offsets() const {
    std::vector<std::vector<Index>> offsets;
    for (const Lane& lane : lanes_) {
      auto& table = offsets.emplace_back();
      const Range ks = filters(lane.group);
      for (Index k = ks.begin; k < ks.end; ++k) {
        table.push_back(frame_.channel_offset(k));
      }
    }
    return offsets;
  }

  // The cells of a row that are `stride` apart from input_.cols.begin + phase on: the same taps
  // reach all of them.
  void add_row(
      Index n, const LaneRun& run, Index row, Index phase, const std::vector<Index>& offsets) {
    const Index first_col = input_.cols.begin + phase;
    std::vector<Tap<T>> taps;
    taps.reserve(static_cast<std::size_t>(shape_.taps()));
    const Index terms = static_cast<Index>(offsets.size());
    for (Index fh = (row + shape_.padding) % shape_.stride; fh < shape_.size; fh += shape_.stride) {
      const Index out_row = (row + shape_.padding - fh) / shape_.stride;
      if (row + shape_.padding < fh || out_row < region_.rows.begin ||
          out_row >= region_.rows.end) {
        continue;
      }
      for (Index fw = (first_col + shape_.padding) % shape_.stride; fw < shape_.size;
           fw += shape_.stride) {
        // Exact, also below zero: fw is congruent to the column.
        const Index out_col = (first_col + shape_.padding - fw) / shape_.stride;
        const Index offset = frame_.cell(n, out_row, out_col) - frame_.data;
        taps.push_back({offset, packed(run.first) + (fh * shape_.size + fw) * terms * kLanes});
      }
    }
    if (taps.empty()) {
      return;
    }
    const Index count = (input_.cols.end - first_col + shape_.stride - 1) / shape_.stride;
    const Index step = shape_.stride * gradient_.block;
    for_each_run(
        count, lane_kernels<T>().pixels_at_once(frame_.block), [&](Index begin, Index pixels) {
          alignas(kAlignment) Sums<T> sums;
          lane_kernels<T>().weighted_sum({frame_.data + begin * frame_.block,
                                          frame_.block,
                                          taps.data(),
                                          static_cast<Index>(taps.size()),
                                          offsets.data(),
                                          terms,
                                          lane_weights(),
                                          sums.data(),
                                          kSumsBlock},
                                         pixels,
                                         run.blocks);
          T* cells = gradient_.cell(n, row, first_col + begin * shape_.stride);
          for (Index block = 0; block < run.blocks; ++block) {
            scatter_lanes(sums.data() + block * kSumsBlock,
                          gradient_,
                          cells,
                          step,
                          pixels,
                          lanes_[static_cast<std::size_t>(run.first + block)],
                          [](T& cell, T sum, Index) { cell += sum; });
          }
        });
  }

  const ConvolutionShape& shape_;
  Region region_;
  Index first_filter_;
  View<T> gradient_;
  ConvolutionWorkspace<T>& workspace_;
  Region input_;
  std::vector<Lane> lanes_;
  std::vector<LaneRun> runs_;
  View<T> frame_;
};

}  // namespace

Index framed_gradient_size(const ConvolutionShape& shape, const Region& output) {
  if (output.empty()) {
    return 0;
  }
  Region part = framed(shape, output, images_at_once<float>(shape, output));
  return partitioner::blocked_volume(part);
}

template <class T>
void direct_backward_data(const ConvolutionShape& shape,
                          View<const T> out_gradient,
                          const Filters<T>& filters,
                          const Region& region,
                          const Region& map,
                          View<T> in_gradient,
                          ConvolutionWorkspace<T>& workspace) {
  if (!region.empty()) {
    BackwardData<T>(shape, region, map, filters.first, in_gradient, workspace)
        .run(out_gradient, filters.weight);
  }
}

template void direct_backward_data<float>(const ConvolutionShape&,
                                          View<const float>,
                                          const Filters<float>&,
                                          const Region&,
                                          const Region&,
                                          View<float>,
                                          ConvolutionWorkspace<float>&);
template void direct_backward_data<double>(const ConvolutionShape&,
                                           View<const double>,
                                           const Filters<double>&,
                                           const Region&,
                                           const Region&,
                                           View<double>,
                                           ConvolutionWorkspace<double>&);

}  // namespace engine
