// What the passes of a convolution share: blocks of kBlockChannels channels, and where a window's
// terms lie. Only the kernels' own files include this.

#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "engine/ops/convolution/direct.h"
#include "engine/ops/loops/joined_rows.h"
#include "engine/ops/loops/lines.h"
#include "engine/ops/loops/threads.h"
#include "engine/ops/simd/block_kernels.h"
#include "engine/ops/simd/cache_blocks.h"

namespace tessera::engine {

// Up to kBlockChannels neighbouring channels of one group.
struct ChannelBlock {
  Index group = 0;
  Range channels;
};

// The channels in such blocks, in order. Groups have `group_size` channels each.
[[nodiscard]] std::vector<ChannelBlock> channel_blocks_of(const Range& channels, Index group_size);

// Offsets of the terms (c, fh, fw) of `group` in a view, from the cell of the window's first tap.
template <class T>
std::vector<Index> window_offsets(const ConvolutionShape& shape, const View<T>& in, Index group) {
  std::vector<Index> offsets;
  offsets.reserve(static_cast<std::size_t>(shape.row()));
  for (Index c = group * shape.group_channels(); c < (group + 1) * shape.group_channels(); ++c) {
    const Index channel = in.channel_offset(c);
    for (Index fh = 0; fh < shape.size.rows; ++fh) {
      for (Index fw = 0; fw < shape.size.cols; ++fw) {
        offsets.push_back(channel + (fh * in.row_stride() + fw * in.block) * shape.dilation);
      }
    }
  }
  return offsets;
}

// One table for each group that `channel_blocks` touch, by group - channel_blocks.front().group.
template <class T>
std::vector<std::vector<Index>> offsets_by_group(const ConvolutionShape& shape,
                                                 const View<T>& in,
                                                 const std::vector<ChannelBlock>& channel_blocks) {
  std::vector<std::vector<Index>> tables;
  for (Index group = channel_blocks.front().group; group <= channel_blocks.back().group; ++group) {
    tables.push_back(window_offsets(shape, in, group));
  }
  return tables;
}

// Whether the channel block is a whole block of the view, aligned as vectors are: what lies beyond
// the last channel of a view is nothing, and may be written.
template <class T>
[[nodiscard]] bool is_block(const ChannelBlock& channel_block, const View<T>& view) {
  return is_whole_block(channel_block.channels, view, kBlockChannels);
}

// Whether the channel block is all of a view, in a block of kNarrowChannels.
template <class T>
[[nodiscard]] bool is_narrow_block(const ChannelBlock& channel_block, const View<T>& view) {
  return view.block == kNarrowChannels && channel_block.channels == view.region.channels;
}

// Neighbouring channel blocks of one group that are computed together.
struct BlockRun {
  Index first = 0;  // number of the first channel block
  Index blocks = 1;
};

[[nodiscard]] std::vector<BlockRun> block_runs(const std::vector<ChannelBlock>& channel_blocks,
                                               Index most_blocks);

// Channel blocks that are computed together, where the gradients of all of them are borrowed.
template <class T>
[[nodiscard]] std::vector<BlockRun> whole_runs(const std::vector<ChannelBlock>& channel_blocks,
                                               View<const T> gradient) {
  const bool borrowed = std::all_of(
      channel_blocks.begin(), channel_blocks.end(), [&](const ChannelBlock& channel_block) {
        return is_block(channel_block, gradient);
      });
  return block_runs(channel_blocks, borrowed ? block_kernels<T>().sum_blocks : 1);
}

// Terms of a sum whose weights, of all blocks of a run, are packed at once: they stay in the
// nearest cache while all pixels meet them.
inline constexpr Index kChunkTerms = 192;
template <class T>
using PackedWeights =
    std::array<T, static_cast<std::size_t>(kMostBlocks* kChunkTerms* kBlockChannels)>;

// What sums of a run of blocks start with: nothing, or the biases of its channels.
template <class T>
struct SumStart {
  alignas(kAlignment) T values[kMostBlocks * kBlockChannels] = {};
};
template <class T>
inline constexpr SumStart<T> kZeroStart{};

// `bias`: of the channels from `first_channel` on, or null.
template <class T>
[[nodiscard]] SumStart<T> bias_start(const T* bias,
                                     Index first_channel,
                                     const ChannelBlock* channel_blocks,
                                     Index blocks) {
  SumStart<T> start;
  for (Index block = 0; block < blocks && bias != nullptr; ++block) {
    const Range& channels = channel_blocks[block].channels;
    std::copy_n(bias + channels.begin - first_channel,
                channels.size(),
                start.values + block * kBlockChannels);
  }
  return start;
}

// Packs `terms` terms of rows of weights, `row` apart, the first of the channel block's at `from`:
// (terms, kBlockChannels), 0 beyond the channel block's channels.
template <class T>
void pack_rows(const ChannelBlock& channel_block, const T* from, Index row, Index terms, T* to) {
  if (channel_block.channels.size() < kBlockChannels) {
    std::fill_n(to, terms * kBlockChannels, T{});
  }
  block_kernels<T>().transpose(
      {from, row, to, kBlockChannels}, channel_block.channels.size(), terms);
}

// How many rows to take as one where each cell is made of one of the other map.
template <class T>
[[nodiscard]] Index rows_of_pixels(const ConvolutionShape& shape,
                                   const Region& region,
                                   const View<const T>& one,
                                   const View<const T>& other) {
  const bool alike = shape.taps() == 1 && shape.stride.product() == 1 && shape.padding.rows == 0 &&
                     shape.padding.cols == 0;
  return alike ? rows_at_once(region, one, other) : 1;
}

// Prefetches `count` weights that lie side by side, to the second cache: they come from far away.
template <class T>
void ask_for_row(const T* row, Index count) {
  for (Index i = 0; i < count; i += kAlignment / static_cast<Index>(sizeof(T))) {
    __builtin_prefetch(row + i, 0, 2);
  }
}

// Bytes of a row of cells that a run computes.
struct LineBytes {
  Index read = 0;
  Index written = 0;
};

// In how many parts each run should compute `lines` rows of cells: so that what a part reads is
// still in cache for the next run. Where threads share a cache, what they write goes there too.
[[nodiscard]] Index parts_of(Index lines, const LineBytes& line, Index runs);

// Calls visit(part, run), in parallel. Threads whose cores share a cache compute runs of the same
// part, or chunk, at about the same time; others have parts of their own.
template <class Visit>
void for_each_part_and_run(Index parts, Index runs, Visit visit) {
  if (cache_blocks().together()) {
    parallel_for_in_turn({0, parts}, {0, runs}, visit);
  } else {
    parallel_for({0, parts}, {0, runs}, visit);
  }
}

// `terms` terms of the sums of a run of blocks, by the kernel for their gradient's blocks.
template <class T>
void add_outer_sums(const OuterSum<T>& job, Index terms, Index blocks, bool narrow) {
  if (narrow) {
    block_kernels<T>().narrow_outer_sum(job, terms);
  } else {
    block_kernels<T>().outer_sum(job, terms, blocks);
  }
}

inline constexpr Index kSumsBlock = kBlockChannels * 16;  // of up to 16 pixels

// Neighbouring pixels of a view that sums of a run of blocks go to: themselves where their blocks
// are whole, or one block of kNarrowChannels, else through a copy.
template <class T>
class RunPixels {
 public:
  RunPixels(const View<T>& view, const ChannelBlock* channel_blocks, Index blocks)
      : blocks_(blocks),
        whole_(std::all_of(
            channel_blocks,
            channel_blocks + blocks,
            [&](const ChannelBlock& channel_block) { return is_block(channel_block, view); })),
        narrow_block_(is_narrow_block(*channel_blocks, view)),
        block_stride_(view.block_stride()) {
    for (Index block = 0; block < blocks; ++block) {
      const Range& channels = channel_blocks[block].channels;
      for (Index c = channels.begin; c < channels.end; ++c) {
        const Index lane = block * kBlockChannels + c - channels.begin;
        offsets_[static_cast<std::size_t>(channel_count_++)] = {
            view.channel_offset(c), lane / kBlockChannels * kSumsBlock + lane % kBlockChannels};
      }
    }
    narrow_ = !whole_ && channel_count_ <= kNarrowChannels;
  }

  // Pixels that are best summed at once.
  [[nodiscard]] Index most_pixels() const {
    return narrow_ ? block_kernels<T>().narrow_pixels : block_kernels<T>().sum_pixels;
  }

  // The sums of `job`, which lacks only where they are, for `pixels` pixels that are `step`
  // elements apart from the one at `cells` on.
  void sum(WeightedSum<T>& job, T* cells, Index step, Index pixels) const {
    if (whole_ || narrow_block_) {
      job.sums = cells + offsets_[0].view;
      job.sums_step = step;
      job.sums_block = block_stride_;
      call_kernel(job, pixels);
      return;
    }
    // Not set to zero as a whole: a pixel of few channels takes hardly longer to compute.
    alignas(kAlignment) T copy[kMostBlocks * kSumsBlock];
    if (job.start == nullptr) {
      for (Index block = 0; block < blocks_; ++block) {
        std::fill_n(copy + block * kSumsBlock, pixels * kBlockChannels, T{});
      }
      for_each_cell(cells, step, pixels, copy, [](T& view, T& sum) { sum = view; });
    }
    job.sums = copy;
    job.sums_step = kBlockChannels;
    job.sums_block = kSumsBlock;
    call_kernel(job, pixels);
    for_each_cell(cells, step, pixels, copy, [](T& view, T& sum) { view = sum; });
  }

 private:
  struct Offsets {
    Index view = 0;
    Index sums = 0;
  };

  void call_kernel(const WeightedSum<T>& job, Index pixels) const {
    if (narrow_) {
      block_kernels<T>().narrow_sum(job, pixels);
    } else {
      block_kernels<T>().weighted_sum(job, pixels, blocks_);
    }
  }

  // Calls copy(number in the view, its copy) for all channels of the pixels.
  template <class Copy>
  void for_each_cell(T* cells, Index step, Index pixels, T* sums, Copy copy) const {
    for (Index p = 0; p < pixels; ++p) {
      for (Index lane = 0; lane < channel_count_; ++lane) {
        const Offsets& offsets = offsets_[static_cast<std::size_t>(lane)];
        copy(cells[p * step + offsets.view], sums[p * kBlockChannels + offsets.sums]);
      }
    }
  }

  Index blocks_;
  bool whole_;
  bool narrow_block_;    // the only channel block
  bool narrow_ = false;  // no more than kNarrowChannels channels, none of them in whole blocks
  Index block_stride_;
  Index channel_count_ = 0;
  std::array<Offsets, static_cast<std::size_t>(kMostBlocks* kBlockChannels)> offsets_{};
};

}  // namespace tessera::engine
