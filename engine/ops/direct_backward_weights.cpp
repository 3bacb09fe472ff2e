#include <cstdint>

#include "engine/ops/direct_lanes.h"

namespace engine {

namespace {

constexpr Index kPieceBytes =
    Index{1} << 18U;  // of two maps that stay in cache while weights' gradients are summed

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

// kLanes channels of part of an output gradient, side by side: borrowed where they lie so, else
// copied.
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
    return {gradient.cell(piece.image, piece.rows.begin, cols.begin) +
                gradient.channel_offset(lane.channels.begin),
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

// Lanes that are computed together, where the gradients of all of them are borrowed.
template <class T>
std::vector<LaneRun> whole_runs(const std::vector<Lane>& lanes, View<const T> gradient) {
  const bool borrowed = std::all_of(
      lanes.begin(), lanes.end(), [&](const Lane& lane) { return is_block(lane, gradient); });
  return lane_runs(lanes, borrowed ? lane_kernels<T>().sum_blocks : 1);
}

// Adds packed sums (lanes, terms, kLanes) to plain ones, (filters, terms).
template <class T>
void add_unpacked(const std::vector<Lane>& lanes, Index terms, const T* packed, T* plain) {
  const Index first = lanes.front().channels.begin;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    for (Index k = lanes[i].channels.begin; k < lanes[i].channels.end; ++k) {
      T* row = plain + (k - first) * terms;
      const T* sums = packed + static_cast<Index>(i) * terms * kLanes + k - lanes[i].channels.begin;
      for (Index term = 0; term < terms; ++term) {
        row[term] += sums[term * kLanes];
      }
    }
  }
}

}  // namespace

template <class T>
void direct_backward_weights(const ConvolutionShape& shape,
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
  const std::vector<LaneRun> runs = whole_runs(lanes, out_gradient);
  const Index run_count = static_cast<Index>(runs.size());
  T* packed = workspace.weights.data();
  std::fill_n(packed, lane_count * shape.row() * kLanes, T{});
  // A thread sums all images for the weights that are its own, so threads never add to the same
  // sum.
#pragma omp parallel
  {
    std::vector<T> copy;
    for (const Piece& piece : pieces) {
      Index gathered = -1;
      LanesOfGradient<T> gradient;
#pragma omp for schedule(static) nowait
      for (Index job = 0; job < run_count * term_runs; ++job) {
        const LaneRun& run = runs[static_cast<std::size_t>(job / term_runs)];
        const Lane& lane = lanes[static_cast<std::size_t>(run.first)];
        if (gathered != run.first) {
          gradient = gather_lanes(out_gradient, lane, piece, region.cols, copy);
          gathered = run.first;
        }
        const Index term = job % term_runs * kOuterTerms;
        const auto& table = offsets[static_cast<std::size_t>(lane.group - lanes.front().group)];
        const T* window = in.cell(piece.image,
                                  piece.rows.begin * shape.stride - shape.padding,
                                  region.cols.begin * shape.stride - shape.padding);
        lane_kernels<T>().outer_sum({gradient.data,
                                     gradient.row_stride,
                                     out_gradient.block_stride(),
                                     window,
                                     in.row_stride() * shape.stride,
                                     in.block * shape.stride,
                                     piece.rows.size(),
                                     region.cols.size(),
                                     table.data() + term,
                                     packed + (run.first * shape.row() + term) * kLanes,
                                     shape.row() * kLanes},
                                    std::min(kOuterTerms, shape.row() - term),
                                    run.blocks);
      }
    }
  }
  add_unpacked(lanes,
               shape.row(),
               static_cast<const T*>(packed),
               weight_gradient + (lanes.front().channels.begin - first_filter) * shape.row());
}

template void direct_backward_weights<float>(const ConvolutionShape&,
                                             View<const float>,
                                             View<const float>,
                                             const Region&,
                                             Index,
                                             float*,
                                             ConvolutionWorkspace<float>&);
template void direct_backward_weights<double>(const ConvolutionShape&,
                                              View<const double>,
                                              View<const double>,
                                              const Region&,
                                              Index,
                                              double*,
                                              ConvolutionWorkspace<double>&);

}  // namespace engine
