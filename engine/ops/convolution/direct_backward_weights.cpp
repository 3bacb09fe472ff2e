#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/direct_plane.h"

namespace tessera::engine {

namespace {

// Pixels whose gradients, of all blocks of a run, stay in the nearest cache while all terms of a
// chunk meet them.
constexpr Index kPiecePixels = 128;

// Part of a map of at most kPiecePixels pixels.
struct Piece {
  Index image = 0;
  Range rows;
  Range cols;
};

// In such an order that each row comes from left to right, after the one above.
std::vector<Piece> pieces_of(const Region& region) {
  std::vector<Piece> pieces;
  const Range& rows = region.rows;
  const Index rows_at_once = std::max<Index>(1, kPiecePixels / region.cols.size());
  for (Index n = region.images.begin; n < region.images.end; ++n) {
    for_each_run(rows.size(), rows_at_once, [&](Index row, Index row_count) {
      for_each_run(region.cols.size(), kPiecePixels, [&](Index col, Index col_count) {
        const Index first_row = rows.begin + row;
        const Index first_col = region.cols.begin + col;
        pieces.push_back(
            {n, {first_row, first_row + row_count}, {first_col, first_col + col_count}});
      });
    });
  }
  return pieces;
}

// kBlockChannels channels of a piece of an output gradient, side by side: borrowed where they lie
// so, else copied. Where there is but one block of kNarrowChannels, those.
template <class T>
struct GradientBlock {
  const T* data = nullptr;
  Index row_stride = 0;
};

template <class T>
GradientBlock<T> gather_gradient_block(View<const T> gradient,
                                       const ChannelBlock& channel_block,
                                       const Piece& piece,
                                       T* copy) {
  if (is_block(channel_block, gradient) || is_narrow_block(channel_block, gradient)) {
    return {gradient.cell(piece.image, piece.rows.begin, piece.cols.begin) +
                gradient.channel_offset(channel_block.channels.begin),
            gradient.row_stride()};
  }
  const Index row_stride = piece.cols.size() * kBlockChannels;
  if (channel_block.channels.size() < kBlockChannels) {
    std::fill_n(copy, piece.rows.size() * row_stride, T{});
  }
  for (Index row = 0; row < piece.rows.size(); ++row) {
    const T* cells = gradient.cell(piece.image, piece.rows.begin + row, piece.cols.begin);
    for (Index l = 0; l < channel_block.channels.size(); ++l) {
      const Index channel = gradient.channel_offset(channel_block.channels.begin + l);
      for (Index col = 0; col < piece.cols.size(); ++col) {
        copy[row * row_stride + col * kBlockChannels + l] = cells[col * gradient.block + channel];
      }
    }
  }
  return {copy, row_stride};
}

template <class T>
class BackwardWeights {
 public:
  // `make`: where there is one, given.out_gradient holds what gradients are made of.
  BackwardWeights(const ConvolutionShape& shape,
                  const BackwardWeightsArguments<T>& given,
                  const typename MadeGradient<T>::Make& make)
      : shape_(shape),
        in_(given.in),
        out_gradient_(given.out_gradient),
        make_(make),
        weight_gradient_(given.weights(shape.row())),
        put_(given.put_transposed()),
        channel_blocks_(channel_blocks_of(given.region.channels, shape.group_filters())),
        runs_(whole_runs(channel_blocks_, out_gradient_)),
        offsets_(offsets_by_group(shape, in_, channel_blocks_)),
        pieces_(pieces_of(given.region)) {}

  // Threads never add to the same sum.
  void run() const {
    if (make_) {
      share_pieces();
    } else {
      share_weights();
    }
  }

 private:
  // A thread sums all images for the weights that are its own.
  void share_weights() const {
    const Index run_count = static_cast<Index>(runs_.size());
    const Index terms = shape_.row();
    const Index at_once = (terms + kTermsAtOnce - 1) / kTermsAtOnce;
    const Index chunks =
        parts_for_threads((terms + kChunkTerms - 1) / kChunkTerms, at_once, run_count);
    const auto end_of = [&](Index chunk) {
      return std::min(at_once * chunk / chunks * kTermsAtOnce, terms);
    };
    for_each_part_and_run(chunks, run_count, [&](Index chunk, Index i) {
      const BlockRun& run = runs_[static_cast<std::size_t>(i)];
      const Range of_chunk{end_of(chunk), end_of(chunk + 1)};
      alignas(kAlignment) PackedWeights<T> sums;
      add_pieces(run, of_chunk, {0, static_cast<Index>(pieces_.size())}, sums.data());
      add_to_weights(run, of_chunk, sums.data());
    });
  }

  // Each gradient is made but once for a chunk of terms: where runs are few, pieces are shared out,
  // in as many parts however many threads there are, so that bits do not depend on these.
  void share_pieces() const {
    const Index run_count = static_cast<Index>(runs_.size());
    const Index pieces = static_cast<Index>(pieces_.size());
    const Index parts = std::clamp<Index>(kPartsToShare / run_count, 1, pieces);
    const Index of_part = kMostBlocks * std::min(shape_.row(), kChunkTerms) * kBlockChannels;
    Array<T> sums(run_count * parts * of_part);
    for_each_run(shape_.row(), kChunkTerms, [&](Index first, Index count) {
      const Range terms{first, first + count};
      parallel_for({0, run_count}, {0, parts}, [&](Index i, Index part) {
        add_pieces(runs_[static_cast<std::size_t>(i)],
                   terms,
                   {pieces * part / parts, pieces * (part + 1) / parts},
                   sums.data() + (i * parts + part) * of_part);
      });
      for (Index i = 0; i < run_count * parts; ++i) {
        add_to_weights(
            runs_[static_cast<std::size_t>(i / parts)], terms, sums.data() + i * of_part);
      }
    });
  }

  // Assigns what some pieces make of the weights.
  void add_pieces(const BlockRun& run, const Range& terms, const Range& numbers, T* sums) const {
    const Index sums_block = terms.size() * kBlockChannels;
    std::fill_n(sums, run.blocks * sums_block, T{});
    alignas(kAlignment) T copy[kMostBlocks * kCopyBlock];
    const bool narrow = is_narrow_block(channel_block_of(run, 0), out_gradient_);
    for (Index number = numbers.begin; number < numbers.end; ++number) {
      OuterSum<T> job = job_of(run, pieces_[static_cast<std::size_t>(number)], copy);
      job.sums_block = sums_block;
      job.offsets = offsets_of(run) + terms.begin;
      job.sums = sums;
      add_outer_sums(job, terms.size(), run.blocks, narrow);
    }
  }

  // Or assigns them.
  void add_to_weights(const BlockRun& run, const Range& terms, const T* sums) const {
    for (Index block = 0; block < run.blocks; ++block) {
      const Range& ks = channel_block_of(run, block).channels;
      T* to = weight_gradient_ + (ks.begin - channel_blocks_.front().channels.begin) * shape_.row();
      put_({sums + block * terms.size() * kBlockChannels,
            kBlockChannels,
            to + terms.begin,
            shape_.row()},
           terms.size(),
           ks.size());
    }
  }

  [[nodiscard]] const ChannelBlock& channel_block_of(const BlockRun& run, Index block) const {
    return channel_blocks_[static_cast<std::size_t>(run.first + block)];
  }

  [[nodiscard]] const Index* offsets_of(const BlockRun& run) const {
    const Index group = channel_block_of(run, 0).group - channel_blocks_.front().group;
    return offsets_[static_cast<std::size_t>(group)].data();
  }

  void make_gradient(const BlockRun& run, const Piece& piece, T* to) const {
    for (Index block = 0; block < run.blocks; ++block) {
      for (Index row = 0; row < piece.rows.size(); ++row) {
        make_(channel_block_of(run, block).channels,
              piece.image,
              piece.rows.begin + row,
              piece.cols,
              to + block * kCopyBlock + row * piece.cols.size() * kBlockChannels);
      }
    }
  }

  // All but where the sums are.
  OuterSum<T> job_of(const BlockRun& run, const Piece& piece, T* copy) const {
    OuterSum<T> job;
    if (make_) {
      make_gradient(run, piece, copy);
      job.gradient = copy;
      job.gradient_row = piece.cols.size() * kBlockChannels;
      job.gradient_block = kCopyBlock;
    } else {
      const GradientBlock<T> gradient =
          gather_gradient_block(out_gradient_, channel_block_of(run, 0), piece, copy);
      job.gradient = gradient.data;
      job.gradient_row = gradient.row_stride;
      job.gradient_block = out_gradient_.block_stride();
    }
    job.in = in_.cell(piece.image,
                      piece.rows.begin * shape_.stride.rows - shape_.padding.rows,
                      piece.cols.begin * shape_.stride.cols - shape_.padding.cols);
    job.in_row = in_.row_stride() * shape_.stride.rows;
    job.in_step = in_.block * shape_.stride.cols;
    job.rows = piece.rows.size();
    job.cols = piece.cols.size();
    const Index block_size =
        is_narrow_block(channel_block_of(run, 0), out_gradient_) ? kNarrowChannels : kBlockChannels;
    if (job.in_row == job.cols * job.in_step && job.gradient_row == job.cols * block_size) {
      job.cols *= job.rows;  // rows follow each other as pixels do
      job.rows = 1;
    }
    return job;
  }

  static constexpr Index kCopyBlock = kPiecePixels * kBlockChannels;
  static constexpr Index kPartsToShare = 16;  // of runs and pieces
  static constexpr Index kTermsAtOnce = 8;    // or more, of a thread: that registers hold

  const ConvolutionShape& shape_;
  View<const T> in_;
  View<const T> out_gradient_;
  const typename MadeGradient<T>::Make& make_;
  T* weight_gradient_;  // of the first channel block's first channel
  decltype(BlockKernels<T>::transpose) put_;
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<std::vector<Index>> offsets_;
  std::vector<Piece> pieces_;
};

template <class T>
bool sums_planes(const ConvolutionShape& shape,
                 const View<const T>& in,
                 const View<const T>& out_gradient,
                 const Region& region) {
  return block_kernels<T>().plane_outer_sum != nullptr && is_plane(shape, in, region, out_gradient);
}

}  // namespace

template <class T>
bool DirectKernel::takes_made_gradient(const View<const T>& in,
                                       const View<const T>& out_gradient,
                                       const Region& region) const {
  const auto channel_blocks = channel_blocks_of(region.channels, shape.group_filters());
  return !sums_planes(shape, in, out_gradient, region) &&
         std::all_of(
             channel_blocks.begin(), channel_blocks.end(), [&](const ChannelBlock& channel_block) {
               return is_block(channel_block, out_gradient);
             });
}

template <class T>
bool DirectKernel::assigns_weights(const View<const T>& in,
                                   const View<const T>& out_gradient,
                                   const Region& region) const {
  return !sums_planes(shape, in, out_gradient, region);
}

template <class T>
void DirectKernel::backward_weights(const BackwardWeightsArguments<T>& given,
                                    const typename MadeGradient<T>::Make& make) const {
  BackwardWeights<T>(shape, given, make).run();
}

template <class T>
void DirectKernel::backward_weights(const BackwardWeightsArguments<T>& given) const {
  if (sums_planes(shape, given.in, given.out_gradient, given.region)) {
    plane_backward_weights(
        shape, given.in, given.out_gradient, given.region, given.weights(shape.row()));
  } else {
    backward_weights(given, {});
  }
}

template bool DirectKernel::takes_made_gradient(const View<const float>&,
                                                const View<const float>&,
                                                const Region&) const;
template bool DirectKernel::assigns_weights(const View<const float>&,
                                            const View<const float>&,
                                            const Region&) const;
template void DirectKernel::backward_weights(const BackwardWeightsArguments<float>&) const;
template void DirectKernel::backward_weights(const BackwardWeightsArguments<float>&,
                                             const MadeGradient<float>::Make&) const;
template bool DirectKernel::takes_made_gradient(const View<const double>&,
                                                const View<const double>&,
                                                const Region&) const;
template bool DirectKernel::assigns_weights(const View<const double>&,
                                            const View<const double>&,
                                            const Region&) const;
template void DirectKernel::backward_weights(const BackwardWeightsArguments<double>&) const;
template void DirectKernel::backward_weights(const BackwardWeightsArguments<double>&,
                                             const MadeGradient<double>::Make&) const;

}  // namespace tessera::engine
