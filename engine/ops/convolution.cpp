#include "engine/ops/convolution.h"

#include <algorithm>
#include <array>

#include "partitioner/errors.h"

namespace engine {

namespace {

using partitioner::expects;
using partitioner::intersect;

constexpr Index kFrameBytes = Index{4} << 20U;  // of output gradient copied at once
constexpr Index kPieceBytes = Index{1} << 18U;  // of two maps that stay in cache while weights' gradients are summed

// Up to kLanes neighbouring channels of one group.
struct Lane {
  Index group = 0;
  Range channels;
};

std::vector<Lane> lanes_of(const Range& channels, Index group_size) {
  std::vector<Lane> lanes;
  for (Index begin = channels.begin; begin < channels.end;) {
    const Index group = begin / group_size;
    const Index end = std::min({begin + kLanes, (group + 1) * group_size, channels.end});
    lanes.push_back({group, {begin, end}});
    begin = end;
  }
  return lanes;
}

// Offsets of the terms (c, fh, fw) of `group` in a view, from the cell of the window's first tap.
template <class T>
std::vector<Index> window_offsets(const ConvolutionShape& shape, const View<T>& in, Index group) {
  std::vector<Index> offsets;
  offsets.reserve(static_cast<std::size_t>(shape.row()));
  for (Index c = group * shape.group_channels(); c < (group + 1) * shape.group_channels(); ++c) {
    const Index channel = in.channel_offset(c);
    for (Index fh = 0; fh < shape.size; ++fh) {
      for (Index fw = 0; fw < shape.size; ++fw) {
        offsets.push_back(channel + fh * in.row_stride() + fw * in.block);
      }
    }
  }
  return offsets;
}

// One table for each group that `lanes` touch, by group - lanes.front().group.
template <class T>
std::vector<std::vector<Index>> offsets_by_group(const ConvolutionShape& shape,
                                                 const View<T>& in,
                                                 const std::vector<Lane>& lanes) {
  std::vector<std::vector<Index>> tables;
  for (Index group = lanes.front().group; group <= lanes.back().group; ++group) {
    tables.push_back(window_offsets(shape, in, group));
  }
  return tables;
}

// Weights as (lanes, terms, kLanes); lanes beyond a group's last filter are 0.
template <class T>
void pack_weights(const ConvolutionShape& shape,
                  const std::vector<Lane>& lanes,
                  const T* weight,
                  T* packed) {
  const Index first = lanes.front().channels.begin;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    T* out = packed + static_cast<Index>(i) * shape.row() * kLanes;
    std::fill_n(out, shape.row() * kLanes, T{});
    for (Index k = lanes[i].channels.begin; k < lanes[i].channels.end; ++k) {
      const T* row = weight + (k - first) * shape.row();
      for (Index term = 0; term < shape.row(); ++term) {
        out[term * kLanes + k - lanes[i].channels.begin] = row[term];
      }
    }
  }
}

// Whether the lanes are one whole block of the view, aligned as vectors are.
template <class T>
bool is_block(const Lane& lane, const View<T>& view) {
  return view.block == kLanes && lane.channels.size() == kLanes &&
         (lane.channels.begin - view.region.channels.begin) % kLanes == 0;
}

template <class T>
using Sums = std::array<T, static_cast<std::size_t>(kLanes * 16)>;

// Moves sums (pixels, kLanes) to `count` channels from `first` on, of pixels `step` apart, through `put(cell, sum, lane)`.
template <class T, class Put>
void scatter_lanes(const Sums<T>& sums,
                   const View<T>& out,
                   T* cells,
                   Index step,
                   Index pixels,
                   const Lane& lane,
                   Put put) {
  if (is_block(lane, out)) {
    T* cell = cells + out.channel_offset(lane.channels.begin);
    for (Index p = 0; p < pixels; ++p) {
      for (Index l = 0; l < kLanes; ++l) {
        put(cell[p * step + l], sums[static_cast<std::size_t>(p * kLanes + l)], l);
      }
    }
    return;
  }
  for (Index l = 0; l < lane.channels.size(); ++l) {
    T* cell = cells + out.channel_offset(lane.channels.begin + l);
    for (Index p = 0; p < pixels; ++p) {
      put(cell[p * step], sums[static_cast<std::size_t>(p * kLanes + l)], l);
    }
  }
}

// Calls visit(col, pixels) over `count` pixels in runs as equal as can be of at most `most`.
template <class Visit>
void for_each_run(Index count, Index most, Visit visit) {
  const Index runs = (count + most - 1) / most;
  for (Index run = 0; run < runs; ++run) {
    const Index begin = count * run / runs;
    visit(begin, count * (run + 1) / runs - begin);
  }
}

}  // namespace

Index packed_weights_size(const ConvolutionShape& shape, const Range& filters) {
  const Index forward = static_cast<Index>(lanes_of(filters, shape.group_filters()).size()) *
                        shape.row() * kLanes;
  const Index groups = filters.empty() ? 0 : (filters.end - 1) / shape.group_filters() -
                                                 filters.begin / shape.group_filters() + 1;
  const Index lanes_per_group = (shape.group_channels() + kLanes - 1) / kLanes;
  const Index backward =
      groups * lanes_per_group * kLanes * shape.taps() * shape.group_filters();
  return std::max(forward, backward);
}

template <class T>
void convolution_forward(const ConvolutionShape& shape,
                         View<const T> in,
                         const T* weight,
                         const T* bias,
                         const Region& region,
                         View<T> out,
                         ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const std::vector<Lane> lanes = lanes_of(region.channels, shape.group_filters());
  const auto offsets = offsets_by_group(shape, in, lanes);
  pack_weights(shape, lanes, weight, workspace.weights.data());
  const Index in_step = shape.stride * in.block;
  const Index most = pixels_at_once(in_step);
  const Index lane_count = static_cast<Index>(lanes.size());
#pragma omp parallel for collapse(3) schedule(static)
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index i = 0; i < lane_count; ++i) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        const Lane& lane = lanes[static_cast<std::size_t>(i)];
        const auto& table = offsets[static_cast<std::size_t>(lane.group - lanes.front().group)];
        const Tap<T> tap{0, workspace.weights.data() + i * shape.row() * kLanes};
        std::array<T, static_cast<std::size_t>(kLanes)> biases{};
        if (bias != nullptr) {
          std::copy_n(bias + (lane.channels.begin - region.channels.begin), lane.channels.size(), biases.begin());
        }
        for_each_run(region.cols.size(), most, [&](Index begin, Index pixels) {
          alignas(kAlignment) Sums<T> sums;
          const Index col = region.cols.begin + begin;
          const T* window =
              in.cell(n, row * shape.stride - shape.padding, col * shape.stride - shape.padding);
          weighted_sum({window, in_step, &tap, 1, table.data(), shape.row(), sums.data()}, pixels);
          scatter_lanes(sums, out, out.cell(n, row, col), out.block, pixels, lane, [&](T& cell, T sum, Index l) {
            cell = sum + biases[static_cast<std::size_t>(l)];
          });
        });
      }
    }
  }
}

namespace {

// Cells that the frame around an output gradient adds on each side, for windows that reach over its edge.
Index frame_cols(const ConvolutionShape& shape) { return (shape.size - 1) / shape.stride; }

Region framed(const ConvolutionShape& shape, const Region& region, Index images) {
  Region result = region;
  result.images.end = result.images.begin + images;
  result.cols = {region.cols.begin - frame_cols(shape), region.cols.end + frame_cols(shape)};
  return result;
}

template <class T>
Index images_at_once(const ConvolutionShape& shape, const Region& output) {
  const Index bytes = partitioner::blocked_volume(framed(shape, output, 1)) * static_cast<Index>(sizeof(T));
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
      : shape_(shape), region_(region), first_filter_(first_filter), gradient_(gradient), workspace_(workspace) {
    const Index first_group = region.channels.begin / shape.group_filters();
    const Index last_group = (region.channels.end - 1) / shape.group_filters();
    input_ = intersect(map,
                       {region.images,
                        {first_group * shape.group_channels(), (last_group + 1) * shape.group_channels()},
                        reach(region.rows),
                        reach(region.cols)});
    lanes_ = lanes_of(input_.channels, shape.group_channels());
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
  [[nodiscard]] T* packed(Index i) const {
    return workspace_.weights.data() + i * shape_.taps() * shape_.group_filters() * kLanes;
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

  // The frame of zeros spares the inner loop any question about edges. It is written once a pass: copies keep off it.
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
        std::copy_n(from.cell(n, row, line.cols.begin) + from.channel_offset(c), line.cols.size() * block, to);
        continue;
      }
      for (Index lane = 0; lane < block; ++lane) {
        const bool inside = c + lane < line.channels.end;
        const T* cells = inside ? from.cell(n, row, line.cols.begin) + from.channel_offset(c + lane) : nullptr;
        for (Index col = 0; col < line.cols.size(); ++col) {
          to[col * block + lane] = inside ? cells[col * from.block] : T{};
        }
      }
    }
  }

  void add(const Range& images) {
    const auto offsets = channel_offsets();
    const Index lane_count = static_cast<Index>(lanes_.size());
#pragma omp parallel for collapse(3) schedule(static)
    for (Index n = images.begin; n < images.end; ++n) {
      for (Index i = 0; i < lane_count; ++i) {
        for (Index row = input_.rows.begin; row < input_.rows.end; ++row) {
          for (Index phase = 0; phase < std::min(shape_.stride, input_.cols.size()); ++phase) {
            add_row(n, i, row, phase, offsets[static_cast<std::size_t>(i)]);
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

  // The cells of a row that are `stride` apart from input_.cols.begin + phase on: the same taps reach all of them.
  void add_row(Index n, Index i, Index row, Index phase, const std::vector<Index>& offsets) {
    const Lane& lane = lanes_[static_cast<std::size_t>(i)];
    const Index first_col = input_.cols.begin + phase;
    std::vector<Tap<T>> taps;
    taps.reserve(static_cast<std::size_t>(shape_.taps()));
    const Index terms = static_cast<Index>(offsets.size());
    for (Index fh = (row + shape_.padding) % shape_.stride; fh < shape_.size; fh += shape_.stride) {
      const Index out_row = (row + shape_.padding - fh) / shape_.stride;
      if (row + shape_.padding < fh || out_row < region_.rows.begin || out_row >= region_.rows.end) {
        continue;
      }
      for (Index fw = (first_col + shape_.padding) % shape_.stride; fw < shape_.size; fw += shape_.stride) {
        // Exact, also below zero: fw is congruent to the column.
        const Index out_col = (first_col + shape_.padding - fw) / shape_.stride;
        const Index offset = frame_.cell(n, out_row, out_col) - frame_.data;
        taps.push_back({offset, packed(i) + (fh * shape_.size + fw) * terms * kLanes});
      }
    }
    if (taps.empty()) {
      return;
    }
    const Index count = (input_.cols.end - first_col + shape_.stride - 1) / shape_.stride;
    const Index step = shape_.stride * gradient_.block;
    for_each_run(count, pixels_at_once(frame_.block), [&](Index begin, Index pixels) {
      alignas(kAlignment) Sums<T> sums;
      weighted_sum({frame_.data + begin * frame_.block, frame_.block, taps.data(),
                    static_cast<Index>(taps.size()), offsets.data(), terms, sums.data()},
                   pixels);
      T* cells = gradient_.cell(n, row, first_col + begin * shape_.stride);
      scatter_lanes(sums, gradient_, cells, step, pixels, lane, [](T& cell, T sum, Index) { cell += sum; });
    });
  }

  const ConvolutionShape& shape_;
  Region region_;
  Index first_filter_;
  View<T> gradient_;
  ConvolutionWorkspace<T>& workspace_;
  Region input_;
  std::vector<Lane> lanes_;
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
void convolution_backward_data(const ConvolutionShape& shape,
                               View<const T> out_gradient,
                               const T* weight,
                               Index first_filter,
                               const Region& region,
                               const Region& map,
                               View<T> in_gradient,
                               ConvolutionWorkspace<T>& workspace) {
  if (!region.empty()) {
    BackwardData<T>(shape, region, map, first_filter, in_gradient, workspace).run(out_gradient, weight);
  }
}

namespace {

// Part of a map that two threads' worth of cache holds.
struct Piece {
  Index image = 0;
  Range rows;
};

std::vector<Piece> pieces_of(const Region& region, Index row_bytes) {
  const Index rows_at_once = std::max<Index>(1, kPieceBytes / std::max<Index>(row_bytes, 1));
  std::vector<Piece> pieces;
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index row = region.rows.begin; row < region.rows.end; row += rows_at_once) {
      pieces.push_back({n, {row, std::min(row + rows_at_once, region.rows.end)}});
    }
  }
  return pieces;
}

// kLanes channels of part of an output gradient, side by side: borrowed where they lie so, else copied.
template <class T>
struct LanesOfGradient {
  const T* data = nullptr;
  Index row_stride = 0;
};

template <class T>
LanesOfGradient<T> gather_lanes(View<const T> gradient,
                                const Lane& lane,
                                const Piece& piece,
                                const Range& cols,
                                std::vector<T>& copy) {
  if (is_block(lane, gradient)) {
    return {gradient.cell(piece.image, piece.rows.begin, cols.begin) + gradient.channel_offset(lane.channels.begin),
            gradient.row_stride()};
  }
  const Index row_stride = cols.size() * kLanes;
  const Index slack = kAlignment / static_cast<Index>(sizeof(T));
  copy.assign(static_cast<std::size_t>(piece.rows.size() * row_stride + slack), T{});
  const auto address = reinterpret_cast<std::uintptr_t>(copy.data());
  T* aligned = copy.data() + (kAlignment - address % kAlignment) % kAlignment / sizeof(T);
  for (Index row = 0; row < piece.rows.size(); ++row) {
    const T* cells = gradient.cell(piece.image, piece.rows.begin + row, cols.begin);
    for (Index l = 0; l < lane.channels.size(); ++l) {
      const Index channel = gradient.channel_offset(lane.channels.begin + l);
      for (Index col = 0; col < cols.size(); ++col) {
        aligned[row * row_stride + col * kLanes + l] = cells[col * gradient.block + channel];
      }
    }
  }
  return {aligned, row_stride};
}

}  // namespace

template <class T>
void convolution_backward_weights(const ConvolutionShape& shape,
                                  View<const T> in,
                                  View<const T> out_gradient,
                                  const Region& region,
                                  Index first_filter,
                                  T* weight_gradient,
                                  ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const std::vector<Lane> lanes = lanes_of(region.channels, shape.group_filters());
  const auto offsets = offsets_by_group(shape, in, lanes);
  const Index row_bytes = region.cols.size() * 2 * kLanes * static_cast<Index>(sizeof(T));
  const std::vector<Piece> pieces = pieces_of(region, row_bytes);
  const Index term_runs = (shape.row() + kOuterTerms - 1) / kOuterTerms;
  const Index lane_count = static_cast<Index>(lanes.size());
  T* packed = workspace.weights.data();
  std::fill_n(packed, lane_count * shape.row() * kLanes, T{});
  // A thread sums all images for the weights that are its own, so threads never add to the same sum.
#pragma omp parallel
  {
    std::vector<T> copy;
    for (const Piece& piece : pieces) {
      Index gathered = -1;
      LanesOfGradient<T> gradient;
#pragma omp for schedule(static) nowait
      for (Index job = 0; job < lane_count * term_runs; ++job) {
        const Index i = job / term_runs;
        const Lane& lane = lanes[static_cast<std::size_t>(i)];
        if (gathered != i) {
          gradient = gather_lanes(out_gradient, lane, piece, region.cols, copy);
          gathered = i;
        }
        const Index term = job % term_runs * kOuterTerms;
        const auto& table = offsets[static_cast<std::size_t>(lane.group - lanes.front().group)];
        const T* window = in.cell(piece.image,
                                  piece.rows.begin * shape.stride - shape.padding,
                                  region.cols.begin * shape.stride - shape.padding);
        outer_sum({gradient.data, gradient.row_stride, window, in.row_stride() * shape.stride,
                   in.block * shape.stride, piece.rows.size(), region.cols.size(), table.data() + term,
                   packed + (i * shape.row() + term) * kLanes},
                  std::min(kOuterTerms, shape.row() - term));
      }
    }
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    for (Index k = lanes[i].channels.begin; k < lanes[i].channels.end; ++k) {
      T* row = weight_gradient + (k - first_filter) * shape.row();
      const T* sums = packed + static_cast<Index>(i) * shape.row() * kLanes + k - lanes[i].channels.begin;
      for (Index term = 0; term < shape.row(); ++term) {
        row[term] += sums[term * kLanes];
      }
    }
  }
}

template void convolution_forward<float>(const ConvolutionShape&, View<const float>, const float*, const float*, const Region&, View<float>, ConvolutionWorkspace<float>&);
template void convolution_forward<double>(const ConvolutionShape&, View<const double>, const double*, const double*, const Region&, View<double>, ConvolutionWorkspace<double>&);
template void convolution_backward_data<float>(const ConvolutionShape&, View<const float>, const float*, Index, const Region&, const Region&, View<float>, ConvolutionWorkspace<float>&);
template void convolution_backward_data<double>(const ConvolutionShape&, View<const double>, const double*, Index, const Region&, const Region&, View<double>, ConvolutionWorkspace<double>&);
template void convolution_backward_weights<float>(const ConvolutionShape&, View<const float>, View<const float>, const Region&, Index, float*, ConvolutionWorkspace<float>&);
template void convolution_backward_weights<double>(const ConvolutionShape&, View<const double>, View<const double>, const Region&, Index, double*, ConvolutionWorkspace<double>&);

}  // namespace engine
