#include "engine/ops/connected/connected.h"

#include <cstring>

#include "engine/ops/connected/connected_rows.h"
#include "engine/ops/convolution/channel_blocks.h"

namespace tessera::engine {

namespace {

using partitioner::MapShape;

// Calls visit(first, terms) for features in runs of at most kChunkTerms that begin at multiples of
// kBlockChannels: squares of weights are transposed as a whole.
template <class Visit>
void for_each_chunk(Index features, Visit visit) {
  for_each_run((features + kBlockChannels - 1) / kBlockChannels,
               kChunkTerms / kBlockChannels,
               [&](Index first, Index count) {
                 visit(first * kBlockChannels,
                       std::min(count * kBlockChannels, features - first * kBlockChannels));
               });
}

template <class T>
class Forward {
 public:
  Forward(const MapShape& map,
          View<const T> in,
          const T* weight,
          const T* bias,
          View<T> out,
          const Region& region)
      : features_(map.volume()),
        in_(in),
        weight_(weight),
        bias_(bias),
        out_(out),
        region_(region),
        channel_blocks_(channel_blocks_of(region.channels, region.channels.end)),
        runs_(block_runs(channel_blocks_, block_kernels<T>().sum_blocks)),
        offsets_(feature_offsets(map, in)) {}

  void run() const {
    const Index images = region_.images.size();
    const Index run_count = static_cast<Index>(runs_.size());
    const Index parts = parts_for_threads(1, images, run_count);
    parallel_for({0, parts}, {0, run_count}, [&](Index part, Index i) {
      compute(runs_[static_cast<std::size_t>(i)],
              {region_.images.begin + images * part / parts,
               region_.images.begin + images * (part + 1) / parts});
    });
  }

 private:
  void compute(const BlockRun& run, const Range& images) const {
    const ChannelBlock* channel_blocks = channel_blocks_.data() + run.first;
    const SumStart<T> biases =
        bias_start(bias_, region_.channels.begin, channel_blocks, run.blocks);
    const RunPixels<T> sums(out_, channel_blocks, run.blocks);
    alignas(kAlignment) PackedWeights<T> weights;
    const Tap<T> tap{0, weights.data()};
    WeightedSum<T> job;
    job.in_step = in_.image_stride();
    job.taps = &tap;
    job.tap_count = 1;
    for_each_chunk(features_, [&](Index first, Index terms) {
      for (Index block = 0; block < run.blocks; ++block) {
        const Index skipped = channel_blocks[block].channels.begin - region_.channels.begin;
        pack_rows(channel_blocks[block],
                  weight_ + skipped * features_ + first,
                  features_,
                  terms,
                  weights.data() + block * terms * kBlockChannels);
      }
      job.offsets = offsets_.data() + first;
      job.terms = terms;
      job.weights_block = terms * kBlockChannels;
      job.start = first == 0 ? biases.values : nullptr;
      for_each_run(images.size(), sums.most_pixels(), [&](Index begin, Index count) {
        job.in = in_.cell(images.begin + begin, 0, 0);
        sums.sum(job, out_.cell(images.begin + begin, 0, 0), out_.image_stride(), count);
      });
    });
  }

  Index features_;
  View<const T> in_;
  const T* weight_;
  const T* bias_;
  View<T> out_;
  const Region& region_;
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<Index> offsets_;
};

// Weights that are packed at once: those of some cells for some outputs, (cells, outputs,
// kBlockChannels) of each block of input channels. Of few outputs, so that all channels of their
// rows are used while these are in cache.
constexpr Index kChunkCells = 12;
constexpr Index kChunkOutputs = 32;

template <class T>
class BackwardData {
 public:
  BackwardData(const MapShape& map,
               View<const T> out_gradient,
               const Filters<T>& weights,
               const Region& region,
               const InputGradient<T>& gradient)
      : map_(map),
        out_gradient_(out_gradient),
        weights_(weights),
        region_(region),
        gradient_(gradient.cells),
        assign_(gradient.assign),
        channel_blocks_(channel_blocks_of({0, map.channels}, map.channels)),
        runs_(block_runs(channel_blocks_, block_kernels<T>().sum_blocks)) {
    for (const BlockRun& run : runs_) {
      sums_.emplace_back(gradient_, channel_blocks_.data() + run.first, run.blocks);
    }
    for (Index k = region.channels.begin; k < region.channels.end; ++k) {
      offsets_.push_back(out_gradient.channel_offset(k));
    }
  }

  // Sums of some channels, of all cells and images of a part, stay in cache from chunk to chunk.
  void run() const {
    constexpr Index kPartBytes = Index{1} << 18U;
    const CacheBlocks& blocks = cache_blocks();
    const Index part_bytes = blocks.together() ? blocks.part_bytes / threads() : kPartBytes;
    const Index images = region_.images.size();
    const Index run_count = static_cast<Index>(runs_.size());
    const Index bytes = images * map_.volume() * static_cast<Index>(sizeof(T));
    const Index least = std::min((bytes + part_bytes - 1) / part_bytes, run_count);
    const Index stripes = parts_for_threads(least, run_count, 1);
    const Index parts = parts_for_threads(1, images, stripes);
    parallel_for({0, parts}, {0, stripes}, [&](Index part, Index stripe) {
      compute({run_count * stripe / stripes, run_count * (stripe + 1) / stripes},
              {region_.images.begin + images * part / parts,
               region_.images.begin + images * (part + 1) / parts});
    });
  }

 private:
  struct Chunk {
    Range outputs;  // counted from region.channels.begin
    Range cells;    // of the map, row by row

    [[nodiscard]] Index terms() const { return outputs.size() * cells.size(); }
  };

  void compute(const Range& runs, const Range& images) const {
    const Index cells = map_.rows * map_.cols;
    const Index most_outputs = std::min(kChunkTerms / std::min(cells, kChunkCells), kChunkOutputs);
    alignas(kAlignment) PackedWeights<T> weights;
    for_each_run(region_.channels.size(), most_outputs, [&](Index output, Index outputs) {
      for (Index run = runs.begin; run < runs.end; ++run) {
        for_each_run(cells, kChunkCells, [&](Index cell, Index count) {
          const Chunk chunk{{output, output + outputs}, {cell, cell + count}};
          pack(runs_[static_cast<std::size_t>(run)], chunk, weights.data());
          add(run, chunk, images, weights.data());
        });
      }
    });
  }

  // Output by output: their weights for neighbouring channels lie near each other.
  void pack(const BlockRun& run, const Chunk& chunk, T* to) const {
    const ChannelBlock* channel_blocks = channel_blocks_.data() + run.first;
    const Index cells = map_.rows * map_.cols;
    const bool whole = channel_blocks[run.blocks - 1].channels.size() == kBlockChannels;
    if (!whole) {
      std::fill_n(to, run.blocks * chunk.terms() * kBlockChannels, T{});
    }
    const Index skipped = region_.channels.begin - weights_.first;
    for (Index k = 0; k < chunk.outputs.size(); ++k) {
      const T* row =
          weights_.weight + (skipped + chunk.outputs.begin + k) * map_.volume() + chunk.cells.begin;
      for (Index block = 0; block < run.blocks; ++block) {
        const Range& channels = channel_blocks[block].channels;
        const T* from = row + channels.begin * cells;
        T* at = to + (block * chunk.terms() + k) * kBlockChannels;
        if (cells == 1 && whole) {
          std::memcpy(at, from, kBlockChannels * sizeof(T));
        } else {
          block_kernels<T>().transpose({from, cells, at, chunk.outputs.size() * kBlockChannels},
                                       channels.size(),
                                       chunk.cells.size());
        }
      }
    }
  }

  void add(Index run, const Chunk& chunk, const Range& images, const T* weights) const {
    const RunPixels<T>& sums = sums_[static_cast<std::size_t>(run)];
    Tap<T> tap{0, weights};
    WeightedSum<T> job;
    job.in_step = out_gradient_.image_stride();
    job.taps = &tap;
    job.tap_count = 1;
    job.offsets = offsets_.data() + chunk.outputs.begin;
    job.terms = chunk.outputs.size();
    job.weights_block = chunk.terms() * kBlockChannels;
    job.start = assign_ && chunk.outputs.begin == 0 ? kZeroStart<T>.values : nullptr;
    for (Index cell = chunk.cells.begin; cell < chunk.cells.end; ++cell) {
      for_each_run(images.size(), sums.most_pixels(), [&](Index begin, Index count) {
        const Index n = images.begin + begin;
        job.in = out_gradient_.cell(n, 0, 0);
        sums.sum(job,
                 gradient_.cell(n, cell / map_.cols, cell % map_.cols),
                 gradient_.image_stride(),
                 count);
      });
      tap.weights += chunk.outputs.size() * kBlockChannels;
    }
  }

  const MapShape& map_;
  View<const T> out_gradient_;
  const Filters<T>& weights_;
  const Region& region_;
  View<T> gradient_;
  bool assign_;
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<RunPixels<T>> sums_;  // of each run
  std::vector<Index> offsets_;      // of the region's outputs in their gradient
};

// Images whose gradients, of all blocks of a run, and features of a chunk stay in cache while they
// meet.
constexpr Index kPieceImages = 32;

template <class T>
class BackwardWeights {
 public:
  BackwardWeights(const MapShape& map,
                  View<const T> in,
                  View<const T> out_gradient,
                  const Region& region,
                  T* weight_gradient)
      : features_(map.volume()),
        in_(in),
        out_gradient_(out_gradient),
        region_(region),
        weight_gradient_(weight_gradient),
        channel_blocks_(channel_blocks_of(region.channels, region.channels.end)),
        runs_(whole_runs(channel_blocks_, out_gradient)),
        offsets_(feature_offsets(map, in)) {}

  // A thread sums all images for the weights that are its own.
  void run() const {
    const Index run_count = static_cast<Index>(runs_.size());
    const Index groups =
        (features_ + kBlockChannels - 1) / kBlockChannels;  // of neighbouring features
    const Index chunks =
        parts_for_threads((features_ + kChunkTerms - 1) / kChunkTerms, groups, run_count);
    parallel_for({0, run_count}, {0, chunks}, [&](Index i, Index chunk) {
      sum(runs_[static_cast<std::size_t>(i)],
          {groups * chunk / chunks * kBlockChannels,
           std::min(groups * (chunk + 1) / chunks * kBlockChannels, features_)});
    });
  }

 private:
  void sum(const BlockRun& run, const Range& terms) const {
    alignas(kAlignment) PackedWeights<T> sums;
    const Index sums_block = terms.size() * kBlockChannels;
    std::fill_n(sums.data(), run.blocks * sums_block, T{});
    alignas(kAlignment) std::array<T, static_cast<std::size_t>(kPieceImages * kBlockChannels)>
        copy{};
    const bool narrow = is_narrow_block(channel_block_of(run, 0), out_gradient_);
    for_each_run(region_.images.size(), kPieceImages, [&](Index begin, Index images) {
      OuterSum<T> job = job_of(run, region_.images.begin + begin, images, copy.data());
      job.sums_block = sums_block;
      job.offsets = offsets_.data() + terms.begin;
      job.sums = sums.data();
      add_outer_sums(job, terms.size(), run.blocks, narrow);
    });
    for (Index block = 0; block < run.blocks; ++block) {
      const Range& ks = channel_block_of(run, block).channels;
      T* to = weight_gradient_ + (ks.begin - region_.channels.begin) * features_ + terms.begin;
      block_kernels<T>().add_transposed(
          {sums.data() + block * sums_block, kBlockChannels, to, features_},
          terms.size(),
          ks.size());
    }
  }

  // Images are its rows; all but where the sums are. Channels of a gradient that are not a block
  // are copied, the others borrowed.
  OuterSum<T> job_of(const BlockRun& run, Index image, Index images, T* copy) const {
    const ChannelBlock& channel_block = channel_block_of(run, 0);
    OuterSum<T> job;
    job.gradient = out_gradient_.cell(image, 0, 0) +
                   out_gradient_.channel_offset(channel_block.channels.begin);
    job.gradient_row = out_gradient_.image_stride();
    job.gradient_block = out_gradient_.block_stride();
    if (!is_block(channel_block, out_gradient_) && !is_narrow_block(channel_block, out_gradient_)) {
      for (Index n = 0; n < images; ++n) {
        for (Index l = 0; l < channel_block.channels.size(); ++l) {
          copy[n * kBlockChannels + l] =
              out_gradient_.at(image + n, channel_block.channels.begin + l, 0, 0);
        }
      }
      job.gradient = copy;
      job.gradient_row = kBlockChannels;
    }
    job.in = in_.cell(image, 0, 0);
    job.in_row = in_.image_stride();
    job.rows = images;
    job.cols = 1;
    return job;
  }

  [[nodiscard]] const ChannelBlock& channel_block_of(const BlockRun& run, Index block) const {
    return channel_blocks_[static_cast<std::size_t>(run.first + block)];
  }

  Index features_;
  View<const T> in_;
  View<const T> out_gradient_;
  const Region& region_;
  T* weight_gradient_;  // of region.channels
  std::vector<ChannelBlock> channel_blocks_;
  std::vector<BlockRun> runs_;
  std::vector<Index> offsets_;
};

}  // namespace

template <class T>
void connected_forward(const MapShape& map,
                       View<const T> in,
                       const T* weight,
                       const T* bias,
                       View<T> out,
                       const Region& region) {
  if (region.images.size() <= kFewImages) {
    rows_forward(map, in, weight, bias, out, region);
  } else if (!region.empty()) {
    Forward<T>(map, in, weight, bias, out, region).run();
  }
}

template <class T>
void connected_backward_data(const MapShape& map,
                             View<const T> out_gradient,
                             const Filters<T>& weights,
                             const Region& region,
                             const InputGradient<T>& in_gradient) {
  InputGradient<T> target = in_gradient;
  const Region wanted = intersect(target.map, target.cells.region);
  const Region reached{region.images, {0, map.channels}, {0, map.rows}, {0, map.cols}};
  if (target.assign && (region.empty() || !contains(reached, wanted))) {
    set_zero(target.cells, wanted);
    target.assign = false;
  }
  if (region.images.size() <= kFewImages) {
    rows_backward_data(map, out_gradient, weights, region, target);
  } else if (!region.empty()) {
    BackwardData<T>(map, out_gradient, weights, region, target).run();
  }
}

template <class T>
void connected_backward_weights(const MapShape& map,
                                View<const T> in,
                                View<const T> out_gradient,
                                const Region& region,
                                Index first_output,
                                T* weight_gradient) {
  T* first = weight_gradient + (region.channels.begin - first_output) * map.volume();
  if (region.images.size() <= kFewImages) {
    rows_backward_weights(map, in, out_gradient, region, first);
  } else if (!region.empty()) {
    BackwardWeights<T>(map, in, out_gradient, region, first).run();
  }
}

template void connected_forward<float>(
    const MapShape&, View<const float>, const float*, const float*, View<float>, const Region&);
template void connected_forward<double>(
    const MapShape&, View<const double>, const double*, const double*, View<double>, const Region&);
template void connected_backward_data<float>(const MapShape&,
                                             View<const float>,
                                             const Filters<float>&,
                                             const Region&,
                                             const InputGradient<float>&);
template void connected_backward_data<double>(const MapShape&,
                                              View<const double>,
                                              const Filters<double>&,
                                              const Region&,
                                              const InputGradient<double>&);
template void connected_backward_weights<float>(
    const MapShape&, View<const float>, View<const float>, const Region&, Index, float*);
template void connected_backward_weights<double>(
    const MapShape&, View<const double>, View<const double>, const Region&, Index, double*);

}  // namespace tessera::engine
