// What the passes of a convolution share: channels in runs of kLanes, and where a window's terms
// lie. Only the kernels' own files include this.

#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "engine/ops/direct.h"
#include "engine/ops/lane_kernels.h"
#include "engine/ops/lines.h"

namespace engine {

// Up to kLanes neighbouring channels of one group.
struct Lane {
  Index group = 0;
  Range channels;
};

// The channels in such runs, in order. Groups have `group_size` channels each.
[[nodiscard]] std::vector<Lane> lanes_of(const Range& channels, Index group_size);

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

// Whether the lanes are a full block of the view, aligned as vectors are.
template <class T>
[[nodiscard]] bool is_block(const Lane& lane, const View<T>& view) {
  return lane.channels.size() == kLanes && is_whole_block(lane.channels, view, kLanes);
}

// Elements of a framed copy of some images of `output`.
[[nodiscard]] Index framed_gradient_size(const ConvolutionShape& shape, const Region& output);

// Neighbouring lanes of one group that are computed together.
struct LaneRun {
  Index first = 0;  // number of the first lane
  Index blocks = 1;
};

[[nodiscard]] std::vector<LaneRun> lane_runs(const std::vector<Lane>& lanes, Index most_blocks);

inline constexpr Index kSumsBlock = kLanes * 16;  // of up to 16 pixels
template <class T>
using Sums = std::array<T, static_cast<std::size_t>(kMostBlocks* kSumsBlock)>;

// Moves sums (pixels, kLanes) to `count` channels from `first` on, of pixels `step` apart, through
// `put(cell, sum, lane)`.
template <class T, class Put>
void scatter_lanes(const T* sums,
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
        put(cell[p * step + l], sums[p * kLanes + l], l);
      }
    }
    return;
  }
  for (Index l = 0; l < lane.channels.size(); ++l) {
    T* cell = cells + out.channel_offset(lane.channels.begin + l);
    for (Index p = 0; p < pixels; ++p) {
      put(cell[p * step], sums[p * kLanes + l], l);
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

}  // namespace engine
