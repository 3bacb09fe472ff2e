#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/direct_plane.h"

namespace tessera::engine {

std::vector<ChannelBlock> channel_blocks_of(const Range& channels, Index group_size) {
  std::vector<ChannelBlock> channel_blocks;
  for (Index begin = channels.begin; begin < channels.end;) {
    const Index group = begin / group_size;
    const Index end = std::min({begin + kBlockChannels, (group + 1) * group_size, channels.end});
    channel_blocks.push_back({group, {begin, end}});
    begin = end;
  }
  return channel_blocks;
}

std::vector<BlockRun> block_runs(const std::vector<ChannelBlock>& channel_blocks,
                                 Index most_blocks) {
  std::vector<BlockRun> runs;
  for (Index i = 0; i < static_cast<Index>(channel_blocks.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!runs.empty() && runs.back().blocks < most_blocks &&
        channel_blocks[at].group == channel_blocks[at - 1].group) {
      ++runs.back().blocks;
    } else {
      runs.push_back({i, 1});
    }
  }
  return runs;
}

Index parts_of(Index lines, const LineBytes& line, Index runs) {
  const CacheBlocks& blocks = cache_blocks();
  const Index line_bytes = line.read + (blocks.together() ? line.written : 0);
  // Of few runs, threads are on several parts at once.
  const Index at_once =
      blocks.together() ? std::max<Index>(threads() / std::max<Index>(runs, 1), 1) : 1;
  const Index part_bytes = blocks.part_bytes / at_once;
  const Index least = (lines * line_bytes + part_bytes - 1) / part_bytes;
  return parts_for_threads(std::clamp<Index>(least, 1, lines), lines, runs);
}

namespace {

template <class T>
class Forward {
 public:
  Forward(const ConvolutionShape& shape,
          View<const T> in,
          const ConvolutionOutput<T>& out,
          const T* weight,
          const T* bias)
      : shape_(shape),
        in_(in),
        region_(out.region),
        out_(out.cells),
        done_(out.done),
        weight_(weight),
        bias_(bias),
        channel_blocks_(channel_blocks_of(region_.channels, shape.group_filters())),
        runs_(block_runs(channel_blocks_, block_kernels<T>().sum_blocks)),
        offsets_(offsets_by_group(shape, in, channel_blocks_)) {}

  void run() const {
    const Index lines = region_.images.size() * region_.rows.size();
    const Index run_count = static_cast<Index>(runs_.size());
    const Index pixels = region_.cols.size() * static_cast<Index>(sizeof(T));
    const LineBytes line{shape_.group_channels() * shape_.stride.product() * pixels,
                         block_kernels<T>().sum_blocks * kBlockChannels * pixels};
    const Index parts = parts_of(lines, line, run_count);
    for_each_part_and_run(parts, run_count, [&](Index part, Index i) {
      compute(runs_[static_cast<std::size_t>(i)],
              {lines * part / parts, lines * (part + 1) / parts});
    });
  }

 private:
  // Lines are rows of all images, one after the other.
  void compute(const BlockRun& run, const Range& lines) const {
    const ChannelBlock* channel_blocks = channel_blocks_.data() + run.first;
    const SumStart<T> biases =
        bias_start(bias_, region_.channels.begin, channel_blocks, run.blocks);
    const RunPixels<T> sums(out_, channel_blocks, run.blocks);
    alignas(kAlignment) PackedWeights<T> weights;
    for_each_run(shape_.row(), kChunkTerms, [&](Index first, Index terms) {
      for (Index block = 0; block < run.blocks; ++block) {
        const Index skipped = channel_blocks[block].channels.begin - region_.channels.begin;
        pack_rows(channel_blocks[block],
                  weight_ + skipped * shape_.row() + first,
                  shape_.row(),
                  terms,
                  weights.data() + block * terms * kBlockChannels);
      }
      const Tap<T> tap{0, weights.data()};
      WeightedSum<T> job;
      job.in_step = shape_.stride.cols * in_.block;
      job.taps = &tap;
      job.tap_count = 1;
      job.offsets =
          offsets_[static_cast<std::size_t>(channel_blocks->group - channel_blocks_.front().group)]
              .data() +
          first;
      job.terms = terms;
      job.weights_block = terms * kBlockChannels;
      job.start = first == 0 ? biases.values : nullptr;
      for (Index line = lines.begin; line < lines.end; ++line) {
        if (line + 1 == lines.end) {
          ask_for_weights(run, first + terms);
        }
        compute_line(sums, line, job);
        if (done_ && first + terms == shape_.row()) {
          finish_line(run, line);
        }
      }
    });
  }

  // The weights of the terms from `first` on are packed next.
  void ask_for_weights(const BlockRun& run, Index first) const {
    for (Index block = 0; block < run.blocks; ++block) {
      const Range& channels = channel_blocks_[static_cast<std::size_t>(run.first + block)].channels;
      for (Index k = channels.begin; k < channels.end; ++k) {
        ask_for_row(weight_ + (k - region_.channels.begin) * shape_.row() + first,
                    std::min(kChunkTerms, shape_.row() - first));
      }
    }
  }

  void finish_line(const BlockRun& run, Index line) const {
    const Index row = region_.rows.begin + line % region_.rows.size();
    for (Index block = 0; block < run.blocks; ++block) {
      done_(channel_blocks_[static_cast<std::size_t>(run.first + block)].channels,
            region_.images.begin + line / region_.rows.size(),
            {row, row + 1});
    }
  }

  void compute_line(const RunPixels<T>& sums, Index line, WeightedSum<T>& job) const {
    const Index n = region_.images.begin + line / region_.rows.size();
    const Index row = region_.rows.begin + line % region_.rows.size();
    const T* window = in_.cell(n,
                               row * shape_.stride.rows - shape_.padding.rows,
                               region_.cols.begin * shape_.stride.cols - shape_.padding.cols);
    T* cells = out_.cell(n, row, region_.cols.begin);
    for_each_run(region_.cols.size(), sums.most_pixels(), [&](Index begin, Index pixels) {
      job.in = window + begin * job.in_step;
      sums.sum(job, cells + begin * out_.block, out_.block, pixels);
    });
  }

  const ConvolutionShape& shape_;
  View<const T> in_;
  const Region& region_;
  View<T> out_;
  const LineDone& done_;
  const T* weight_;
  const T* bias_;
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<std::vector<Index>> offsets_;
};

}  // namespace

template <class T>
void DirectKernel::forward(const ForwardArguments<T>& given) const {
  const Region& region = given.out.region;
  if (is_plane<T>(shape, given.in, region, given.out.cells) &&
      region.channels.size() <= block_kernels<T>().plane_filters) {
    plane_forward(shape, given);
  } else {
    const auto [weight, bias, prepared] = given.filters;
    const Index at_once = rows_of_pixels(shape, region, given.in, View<const T>(given.out.cells));
    ConvolutionOutput<T> out{
        joined(given.out.cells, at_once), joined(region, at_once), given.out.done};
    if (at_once > 1 && out.done) {
      out.done = [&](const Range& channels, Index n, const Range& rows) {
        const Index first = region.rows.begin;
        given.out.done(channels, n, {first + rows.begin * at_once, first + rows.end * at_once});
      };
    }
    Forward<T>(shape, joined(given.in, at_once), out, weight, bias).run();
  }
}

template void DirectKernel::forward(const ForwardArguments<float>&) const;
template void DirectKernel::forward(const ForwardArguments<double>&) const;

}  // namespace tessera::engine
