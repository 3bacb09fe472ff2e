#include "engine/ops/direct_lanes.h"
#include "engine/ops/direct_plane.h"

namespace engine {

namespace {

// Pixels whose gradients, of all lanes of a run, stay in the nearest cache while all terms of a
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

// kLanes channels of a piece of an output gradient, side by side: borrowed where they lie so, else
// copied. Where there is but one block of kNarrowLanes, those.
template <class T>
struct LanesOfGradient {
  const T* data = nullptr;
  Index row_stride = 0;
};

template <class T>
LanesOfGradient<T> gather_lanes(View<const T> gradient,
                                const Lane& lane,
                                const Piece& piece,
                                T* copy) {
  if (is_block(lane, gradient) || is_narrow_block(lane, gradient)) {
    return {gradient.cell(piece.image, piece.rows.begin, piece.cols.begin) +
                gradient.channel_offset(lane.channels.begin),
            gradient.row_stride()};
  }
  const Index row_stride = piece.cols.size() * kLanes;
  for (Index row = 0; row < piece.rows.size(); ++row) {
    const T* cells = gradient.cell(piece.image, piece.rows.begin + row, piece.cols.begin);
    for (Index l = 0; l < lane.channels.size(); ++l) {
      const Index channel = gradient.channel_offset(lane.channels.begin + l);
      for (Index col = 0; col < piece.cols.size(); ++col) {
        copy[row * row_stride + col * kLanes + l] = cells[col * gradient.block + channel];
      }
    }
  }
  return {copy, row_stride};
}

template <class T>
class BackwardWeights {
 public:
  BackwardWeights(const ConvolutionShape& shape,
                  View<const T> in,
                  View<const T> out_gradient,
                  const Region& region,
                  T* weight_gradient)
      : shape_(shape),
        in_(in),
        out_gradient_(out_gradient),
        weight_gradient_(weight_gradient),
        lanes_(lanes_of(region.channels, shape.group_filters())),
        runs_(whole_runs(lanes_, out_gradient)),
        offsets_(offsets_by_group(shape, in, lanes_)),
        pieces_(pieces_of(region)) {}

  // A thread sums all images for the weights that are its own, so threads never add to the same
  // sum.
  void run() const {
    const Index run_count = static_cast<Index>(runs_.size());
    const Index terms = shape_.row();
    const Index chunks = parts_for_threads((terms + kChunkTerms - 1) / kChunkTerms,
                                           (terms + kOuterTerms - 1) / kOuterTerms,
                                           run_count);
    parallel_for({0, chunks}, {0, run_count}, [&](Index chunk, Index i) {
      sum(runs_[static_cast<std::size_t>(i)],
          {terms * chunk / chunks, terms * (chunk + 1) / chunks});
    });
  }

 private:
  void sum(const LaneRun& run, const Range& terms) const {
    alignas(kAlignment) PackedWeights<T> sums;
    const Index sums_block = terms.size() * kLanes;
    std::fill_n(sums.data(), run.blocks * sums_block, T{});
    alignas(kAlignment) std::array<T, static_cast<std::size_t>(kPiecePixels * kLanes)> copy{};
    const bool narrow = is_narrow_block(lane_of(run, 0), out_gradient_);
    for (const Piece& piece : pieces_) {
      OuterSum<T> job = job_of(run, piece, copy.data());
      job.sums_block = sums_block;
      job.offsets = offsets_of(run) + terms.begin;
      job.sums = sums.data();
      add_outer_sums(job, terms.size(), run.blocks, narrow);
    }
    for (Index block = 0; block < run.blocks; ++block) {
      const Range& ks = lane_of(run, block).channels;
      T* to = weight_gradient_ + (ks.begin - lanes_.front().channels.begin) * shape_.row();
      lane_kernels<T>().add_transposed(
          {sums.data() + block * sums_block, kLanes, to + terms.begin, shape_.row()},
          terms.size(),
          ks.size());
    }
  }

  [[nodiscard]] const Lane& lane_of(const LaneRun& run, Index block) const {
    return lanes_[static_cast<std::size_t>(run.first + block)];
  }

  [[nodiscard]] const Index* offsets_of(const LaneRun& run) const {
    const Index group = lane_of(run, 0).group - lanes_.front().group;
    return offsets_[static_cast<std::size_t>(group)].data();
  }

  // All but where the sums are.
  OuterSum<T> job_of(const LaneRun& run, const Piece& piece, T* copy) const {
    const LanesOfGradient<T> gradient = gather_lanes(out_gradient_, lane_of(run, 0), piece, copy);
    OuterSum<T> job;
    job.gradient = gradient.data;
    job.gradient_row = gradient.row_stride;
    job.gradient_block = out_gradient_.block_stride();
    job.in = in_.cell(piece.image,
                      piece.rows.begin * shape_.stride - shape_.padding,
                      piece.cols.begin * shape_.stride - shape_.padding);
    job.in_row = in_.row_stride() * shape_.stride;
    job.in_step = in_.block * shape_.stride;
    job.rows = piece.rows.size();
    job.cols = piece.cols.size();
    return job;
  }

  const ConvolutionShape& shape_;
  View<const T> in_;
  View<const T> out_gradient_;
  T* weight_gradient_;  // of the first lane's first channel
  std::vector<Lane> lanes_;
  std::vector<LaneRun> runs_;
  std::vector<std::vector<Index>> offsets_;
  std::vector<Piece> pieces_;
};

}  // namespace

template <class T>
void direct_backward_weights(const ConvolutionShape& shape,
                             View<const T> in,
                             View<const T> out_gradient,
                             const Region& region,
                             Index first_filter,
                             T* weight_gradient) {
  T* first = weight_gradient + (region.channels.begin - first_filter) * shape.row();
  if (lane_kernels<T>().plane_outer_sum != nullptr && is_plane(shape, in, region, out_gradient)) {
    plane_backward_weights(shape, in, out_gradient, region, first);
  } else {
    BackwardWeights<T>(shape, in, out_gradient, region, first).run();
  }
}

template void direct_backward_weights<float>(
    const ConvolutionShape&, View<const float>, View<const float>, const Region&, Index, float*);
template void direct_backward_weights<double>(
    const ConvolutionShape&, View<const double>, View<const double>, const Region&, Index, double*);

}  // namespace engine
