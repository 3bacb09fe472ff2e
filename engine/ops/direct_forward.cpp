#include "engine/ops/direct_lanes.h"

namespace engine {

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

std::vector<LaneRun> lane_runs(const std::vector<Lane>& lanes, Index most_blocks) {
  std::vector<LaneRun> runs;
  for (Index i = 0; i < static_cast<Index>(lanes.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!runs.empty() && runs.back().blocks < most_blocks &&
        lanes[at].group == lanes[at - 1].group) {
      ++runs.back().blocks;
    } else {
      runs.push_back({i, 1});
    }
  }
  return runs;
}

ConvolutionWorkspaceSize direct_workspace(const ConvolutionShape& shape,
                                          const Range& filters,
                                          const Region& output) {
  const Index forward =
      static_cast<Index>(lanes_of(filters, shape.group_filters()).size()) * shape.row() * kLanes;
  const Index groups = filters.empty() ? 0
                                       : (filters.end - 1) / shape.group_filters() -
                                             filters.begin / shape.group_filters() + 1;
  const Index lanes_per_group = (shape.group_channels() + kLanes - 1) / kLanes;
  const Index backward = groups * lanes_per_group * kLanes * shape.taps() * shape.group_filters();
  return {std::max(forward, backward), framed_gradient_size(shape, output), 0};
}

namespace {

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

}  // namespace

template <class T>
void direct_forward(const ConvolutionShape& shape,
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
  const Index most = lane_kernels<T>().pixels_at_once(in_step);
  const std::vector<LaneRun> runs = lane_runs(lanes, lane_kernels<T>().sum_blocks);
  const Index run_count = static_cast<Index>(runs.size());
  const Index lane_weights = shape.row() * kLanes;
  const auto compute_row = [&](Index n, const LaneRun& run, Index row) {
    const Lane* lane = lanes.data() + run.first;
    const auto& table = offsets[static_cast<std::size_t>(lane->group - lanes.front().group)];
    const Tap<T> tap{0, workspace.weights.data() + run.first * lane_weights};
    for_each_run(region.cols.size(), most, [&](Index begin, Index pixels) {
      alignas(kAlignment) Sums<T> sums;
      const Index col = region.cols.begin + begin;
      const T* window =
          in.cell(n, row * shape.stride - shape.padding, col * shape.stride - shape.padding);
      lane_kernels<T>().weighted_sum({window,
                                      in_step,
                                      &tap,
                                      1,
                                      table.data(),
                                      shape.row(),
                                      lane_weights,
                                      sums.data(),
                                      kSumsBlock},
                                     pixels,
                                     run.blocks);
      for (Index block = 0; block < run.blocks; ++block) {
        const T* biases =
            bias == nullptr ? nullptr : bias + lane[block].channels.begin - region.channels.begin;
        scatter_lanes(sums.data() + block * kSumsBlock,
                      out,
                      out.cell(n, row, col),
                      out.block,
                      pixels,
                      lane[block],
                      [biases](T& cell, T sum, Index l) {
                        cell = biases == nullptr ? sum : sum + biases[l];
                      });
      }
    });
  };
#pragma omp parallel for collapse(3) schedule(static)
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for (Index i = 0; i < run_count; ++i) {
      for (Index row = region.rows.begin; row < region.rows.end; ++row) {
        compute_row(n, runs[static_cast<std::size_t>(i)], row);
      }
    }
  }
}

template void direct_forward<float>(const ConvolutionShape&,
                                    View<const float>,
                                    const float*,
                                    const float*,
                                    const Region&,
                                    View<float>,
                                    ConvolutionWorkspace<float>&);
template void direct_forward<double>(const ConvolutionShape&,
                                     View<const double>,
                                     const double*,
                                     const double*,
                                     const Region&,
                                     View<double>,
                                     ConvolutionWorkspace<double>&);

}  // namespace engine
