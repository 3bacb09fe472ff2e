#include "engine/ops/winograd.h"

#include <algorithm>

#include "engine/ops/direct_lanes.h"
#include "engine/ops/winograd_squares.h"

namespace engine {

namespace {

using partitioner::intersect;
using partitioner::keeps_winograd_filters;
using partitioner::winograd_filter_elements;

// Elements of filters that are in work at once: few enough to stay in a cache of the second level
// beside the tiles that they meet. Of more, the parts that tiles meet stay there, one after the
// other: batches of tiles are larger then.
constexpr Index kFilterElements = Index{5} << 16U;
constexpr Index kPartBlocks = 2 * kMostBlocks;
constexpr Index kPartChannels = 4 * kLanes;
constexpr Index kTileElements = Index{1} << 21U;
constexpr Index kFewestTiles = 14;
constexpr Index kMostTiles = 56;
constexpr Index kMostTilesOfParts = 224;

// A convolution goes through batches of tiles and, for each, through parts of its filters: some
// outputs' channels and, for these, one run of inputs' channels after the other.
struct Blocking {
  Index tiles = 0;          // of a batch
  Index part_blocks = 0;    // of outputs, of a part
  Index part_channels = 0;  // of inputs, of a part
  bool kept = true;         // whether there is room for all filters, or for a part
  Index blocks = 0;         // of outputs that there is room for
  Index channels = 0;       // of inputs that there is room for
};

// For a grid of `tiles` tiles.
Blocking blocking_of(Index side, Index ins, Index outs, Index tiles) {
  const Index per_tile = positions_of(side) * kLanes;  // and block
  const Index blocks = blocks_of(outs);
  const Index channels = blocks_of(ins) * kLanes;
  const bool whole = winograd_filter_elements(side, ins, outs) <= kFilterElements;
  Blocking blocking;
  blocking.kept = keeps_winograd_filters(side, ins, outs);
  blocking.part_blocks = whole ? blocks : std::min(blocks, kPartBlocks);
  blocking.part_channels = whole ? channels : std::min(channels, kPartChannels);
  blocking.blocks = blocking.kept ? blocks : blocking.part_blocks;
  blocking.channels = blocking.kept ? channels : blocking.part_channels;
  const Index most =
      std::clamp(kTileElements / (per_tile * (blocks_of(ins) + blocking.part_blocks)),
                 kFewestTiles,
                 whole ? kMostTiles : kMostTilesOfParts);
  blocking.tiles = std::min(most, tiles);
  return blocking;
}

// Calls visit(Range) for runs of at most `most` channels that together are `channels`.
template <class Visit>
void for_each_part(Index most, const Range& channels, Visit visit) {
  for (Index begin = channels.begin; begin < channels.end; begin += most) {
    visit(Range{begin, std::min(begin + most, channels.end)});
  }
}

// sums (+)= filters * tiles at every position, for `count` tiles and the tiles' channels `inputs`,
// which the filters begin with; the sums are assigned where these are the first. Called by all
// threads of a team.
template <class T>
void multiply(const TransformedFilters<T>& filters,
              Index positions,
              Index count,
              const Range& inputs,
              const TransformedTiles<T>& tiles,
              const TransformedTiles<T>& sums) {
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const Index pairs = (sums.blocks + kMostBlocks - 1) / kMostBlocks;
#pragma omp for collapse(2) schedule(static)
  for (Index position = 0; position < positions; ++position) {
    for (Index pair = 0; pair < pairs; ++pair) {
      const Index block = pair * kMostBlocks;
      const Index blocks = std::min(kMostBlocks, sums.blocks - block);
      for_each_run(count, kernels.product_pixels, [&](Index first, Index pixels) {
        kernels.pixel_product({tiles.at(position, inputs.begin / kLanes, first),
                               tiles.block_stride(),
                               inputs.size(),
                               filters.at(position, block, 0),
                               filters.block_stride(),
                               sums.at(position, block, first),
                               sums.block_stride(),
                               inputs.begin == 0},
                              pixels,
                              blocks);
      });
    }
  }
}

// Where the weights from an input to an output channel, both counted from 0, lie: at taps + out *
// out_step + in * in_step, to be taken in order or turned by 180 degrees.
template <class T>
struct FilterSource {
  const T* taps = nullptr;
  Index out_step = 0;
  Index in_step = 0;
  bool turned = false;

  [[nodiscard]] FilterSource from(Index out, Index in) const {
    return {taps + out * out_step + in * in_step, out_step, in_step, turned};
  }
};

template <class T>
FilterSource<T> filters_forward(const ConvolutionShape& shape, const T* weight) {
  return {weight, shape.row(), shape.taps(), false};
}

// Of `outs` outputs and `ins` inputs. Called by all threads of a team.
template <class T>
void transform_filters(Index side,
                       Index outs,
                       Index ins,
                       const FilterSource<T>& from,
                       const TransformedFilters<T>& to) {
  const auto transform = lane_kernels<T>().transform_filters[transform_number(side)];
  for_each_share(blocks_of(outs), ins, [&](Index block, const Range& share) {
    FilterTransform<T> job;
    job.taps = from.taps + block * kLanes * from.out_step + share.begin * from.in_step;
    job.lane_step = from.out_step;
    job.channel_step = from.in_step;
    job.lanes = std::min(kLanes, outs - block * kLanes);
    job.channels = share.size();
    job.turned = from.turned;
    job.positions = to.at(0, block, share.begin);
    job.position_step = to.position_stride();
    transform(job);
  });
}

// A convolution of tiles: of the windows of `in`, with `filters`, to `out`.
template <class T>
struct TiledConvolution {
  Index side = 4;
  SquareSource<T> in;
  FilterSource<T> filters;
  SumTarget<T> out;
};

// The same for some of its output channels.
template <class T>
TiledConvolution<T> part_of(TiledConvolution<T> job, const Range& channels) {
  const Index skipped = channels.begin - job.out.region.channels.begin;
  job.filters = job.filters.from(skipped, 0);
  job.out.region.channels = channels;
  job.out.bias = job.out.bias == nullptr ? nullptr : job.out.bias + skipped;
  return job;
}

// Scratch of a pass: filters, or their gradients, then tiles and sums (or gradients) of one batch.
template <class T>
struct WinogradScratch {
  TransformedFilters<T> filters;
  TransformedTiles<T> tiles;
  Index elements = 0;

  WinogradScratch(T* workspace, Index side, const Blocking& blocking, Index in_blocks)
      : filters{workspace, blocking.blocks, blocking.channels},
        tiles{nullptr, in_blocks, blocking.tiles},
        kept_(blocking.kept) {
    const Index positions = positions_of(side);
    const TransformedTiles<T> sums{nullptr, blocking.part_blocks, blocking.tiles};
    const Index filter_elements = positions * filters.position_stride();
    tiles.data = workspace + filter_elements;
    elements = filter_elements + positions * (tiles.position_stride() + sums.position_stride());
  }

  // Where a part of the filters lies, counted from the first output and input on.
  [[nodiscard]] TransformedFilters<T> part(Index out, Index in) const {
    TransformedFilters<T> there = filters;
    there.data = kept_ ? filters.at(0, out / kLanes, in) : filters.data;
    return there;
  }

 private:
  bool kept_;
};

// Calls `done` for the lines whose last tile is one of the batch. Called by all threads of a team.
void finish_lines(const TileGrid& grid,
                  const Range& batch,
                  const Region& region,
                  const LineDone& done) {
  const Range rows = grid.rows_that_end_in(batch);
  const Index blocks = blocks_of(region.channels.size());
#pragma omp for collapse(2) schedule(static)
  for (Index number = rows.begin; number < rows.end; ++number) {
    for (Index block = 0; block < blocks; ++block) {
      const TileGrid::Lines lines = grid.lines_of(number, region);
      for (Index row = lines.rows.begin; row < lines.rows.end; ++row) {
        done(block_channels(region.channels, block), lines.image, row);
      }
    }
  }
}

// `prepared`: the filters are there, all of them.
template <class T>
void convolve(const TiledConvolution<T>& job, const LineDone& done, bool prepared, T* workspace) {
  const TileGrid grid(job.side, job.out.region);
  const Index ins = job.in.squares.cells.channels.size();
  const Range& outs = job.out.region.channels;
  const Blocking blocking = blocking_of(job.side, ins, outs.size(), grid.count());
  const Index positions = positions_of(job.side);
  const WinogradScratch<T> scratch(workspace, job.side, blocking, blocks_of(ins));
  const TransformedTiles<T>& tiles = scratch.tiles;
#pragma omp parallel
  for_each_run(grid.count(), blocking.tiles, [&](Index first, Index count) {
    const Range batch{first, first + count};
    transform_squares(job.in, grid, batch, tiles);
    for_each_part(blocking.part_blocks * kLanes, outs, [&](const Range& channels) {
      const TiledConvolution<T> part = part_of(job, channels);
      const Index blocks = blocks_of(channels.size());
      const TransformedTiles<T> sums{tiles.at(positions, 0, 0), blocks, blocking.tiles};
      for_each_part(blocking.part_channels, {0, ins}, [&](const Range& inputs) {
        const auto filters = scratch.part(channels.begin - outs.begin, inputs.begin);
        if (!prepared && (first == 0 || !blocking.kept)) {
          transform_filters(job.side,
                            channels.size(),
                            inputs.size(),
                            part.filters.from(0, inputs.begin),
                            filters);
        }
        multiply(filters, positions, count, inputs, tiles, sums);
      });
      transform_sums(sums, grid, batch, part.out);
      if (done) {
        finish_lines(grid, batch, part.out.region, done);
      }
    });
  });
}

Range grow(const Range& range, Index before, Index after) {
  return {range.begin - before, range.end + after};
}

// The input cells that a 3x3 convolution requires for `region`.
Region window_of(const ConvolutionShape& shape, const Region& region) {
  const Index after = kFilterSide - 1 - shape.padding;
  return {region.images,
          {0, shape.channels},
          grow(region.rows, shape.padding, after),
          grow(region.cols, shape.padding, after)};
}

// sums (+)= tiles * gradients at every position, over `count` tiles, of the tiles' channels
// `inputs`, which the sums begin with. Called by all threads of a team.
template <class T>
void add_products(const TransformedTiles<T>& tiles,
                  const Range& inputs,
                  const TransformedTiles<T>& gradients,
                  Index positions,
                  Index count,
                  bool assign,
                  const TransformedFilters<T>& sums) {
  const Index pairs = (gradients.blocks + kMostBlocks - 1) / kMostBlocks;
  const Index runs = blocks_of(inputs.size()) * kLanes / kProductChannels;
#pragma omp for collapse(3) schedule(static)
  for (Index position = 0; position < positions; ++position) {
    for (Index pair = 0; pair < pairs; ++pair) {
      for (Index run = 0; run < runs; ++run) {
        const Index block = pair * kMostBlocks;
        const Index channel = run * kProductChannels;
        const Index input = inputs.begin + channel;
        lane_kernels<T>().weight_product({tiles.at(position, input / kLanes, 0) + input % kLanes,
                                          gradients.at(position, block, 0),
                                          gradients.block_stride(),
                                          count,
                                          sums.at(position, block, channel),
                                          sums.block_stride(),
                                          assign},
                                         std::min(kMostBlocks, gradients.blocks - block));
      }
    }
  }
}

// Transforms `sums` back and adds them to the weights of `filters` filters for `inputs`. Called by
// all threads of a team.
template <class T>
void add_filters(Index side,
                 const TransformedFilters<T>& sums,
                 const ConvolutionShape& shape,
                 Index filters,
                 const Range& inputs,
                 T* weight_gradient) {
  const auto transform = lane_kernels<T>().transform_filter_gradients[transform_number(side)];
  for_each_share(blocks_of(filters), inputs.size(), [&](Index block, const Range& share) {
    FilterGradientTransform<T> job;
    job.positions = sums.at(0, block, share.begin);
    job.position_step = sums.position_stride();
    job.taps = weight_gradient + block * kLanes * shape.row() +
               (inputs.begin + share.begin) * shape.taps();
    job.lane_step = shape.row();
    job.channel_step = shape.taps();
    job.lanes = std::min(kLanes, filters - block * kLanes);
    job.channels = share.size();
    transform(job);
  });
}

}  // namespace

Index winograd_workspace(const WinogradMethod& method, const Region& region, ConvolutionPass pass) {
  if (region.empty()) {
    return 0;
  }
  const bool to_data = pass == ConvolutionPass::BackwardData;
  const Index filters = region.channels.size();
  const Index ins = to_data ? filters : method.shape.channels;
  const Index outs = to_data ? method.shape.channels : filters;
  const TileGrid grid(method.side, to_data ? window_of(method.shape, region) : region);
  const Blocking blocking = blocking_of(method.side, ins, outs, grid.count());
  return WinogradScratch<float>(nullptr, method.side, blocking, blocks_of(ins)).elements;
}

template <class T>
bool winograd_prepare(const WinogradMethod& method, const T* weight, Index filters, T* workspace) {
  const ConvolutionShape& shape = method.shape;
  const Blocking blocking = blocking_of(method.side, shape.channels, filters, 1);
  if (!blocking.kept) {
    return false;
  }
  const WinogradScratch<T> scratch(workspace, method.side, blocking, blocks_of(shape.channels));
#pragma omp parallel
  transform_filters(
      method.side, filters, shape.channels, filters_forward(shape, weight), scratch.filters);
  return true;
}

template <class T>
void winograd_forward(const WinogradMethod& method,
                      View<const T> in,
                      const ForwardFilters<T>& filters,
                      const ConvolutionOutput<T>& out,
                      T* workspace) {
  const Region& region = out.region;
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const std::size_t number = transform_number(side);
  TiledConvolution<T> job;
  job.side = side;
  job.in = {kernels.transform_input[number],
            in,
            {window_side(side), -shape.padding, window_of(shape, region)}};
  job.filters = filters_forward(shape, filters.weight);
  job.out = {kernels.transform_sums[number], out.cells, region, filters.bias, false};
  convolve(job, out.done, filters.prepared, workspace);
}

template <class T>
void winograd_backward_data(const WinogradMethod& method,
                            View<const T> out_gradient,
                            const Filters<T>& filters,
                            const Region& region,
                            const InputGradient<T>& in_gradient,
                            T* workspace) {
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  const Region inputs = intersect(in_gradient.map, window_of(shape, region));
  if (inputs.empty()) {
    return;
  }
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const std::size_t number = transform_number(side);
  const T* weight = filters.weight + (region.channels.begin - filters.first) * shape.row();
  TiledConvolution<T> job;
  job.side = side;
  job.in = {kernels.transform_input[number],
            out_gradient,
            {window_side(side), shape.padding - (kFilterSide - 1), region}};
  job.filters = {weight, shape.taps(), shape.row(), true};
  job.out = {
      kernels.transform_sums[number], in_gradient.cells, inputs, nullptr, !in_gradient.assign};
  convolve(job, {}, false, workspace);
}

template <class T>
void winograd_backward_weights(const WinogradMethod& method,
                               View<const T> in,
                               View<const T> out_gradient,
                               const Region& region,
                               Index first_filter,
                               T* weight_gradient,
                               T* workspace) {
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const std::size_t number = transform_number(side);
  const TileGrid grid(side, region);
  const Index positions = positions_of(side);
  const Blocking blocking = blocking_of(side, shape.channels, region.channels.size(), grid.count());
  const WinogradScratch<T> scratch(workspace, side, blocking, blocks_of(shape.channels));
  const TransformedTiles<T>& tiles = scratch.tiles;
  const SquareSource<T> windows{kernels.transform_input[number],
                                in,
                                {window_side(side), -shape.padding, window_of(shape, region)}};
#pragma omp parallel
  for_each_run(grid.count(), blocking.tiles, [&](Index first, Index count) {
    const Range batch{first, first + count};
    transform_squares(windows, grid, batch, tiles);
    for_each_part(blocking.part_blocks * kLanes, region.channels, [&](const Range& filters) {
      const Region outputs{region.images, filters, region.rows, region.cols};
      const SquareSource<T> source{
          kernels.transform_gradient[number], out_gradient, {side, 0, outputs}};
      const Index blocks = blocks_of(filters.size());
      const TransformedTiles<T> gradients{tiles.at(positions, 0, 0), blocks, blocking.tiles};
      transform_squares(source, grid, batch, gradients);
      for_each_part(blocking.part_channels, {0, shape.channels}, [&](const Range& inputs) {
        const auto sums = scratch.part(filters.begin - region.channels.begin, inputs.begin);
        const bool assign = first == 0 || !blocking.kept;
        add_products(tiles, inputs, gradients, positions, count, assign, sums);
        if (batch.end == grid.count() || !blocking.kept) {
          T* gradient = weight_gradient + (filters.begin - first_filter) * shape.row();
          add_filters(side, sums, shape, filters.size(), inputs, gradient);
        }
      });
    });
  });
}

template bool winograd_prepare<float>(const WinogradMethod&, const float*, Index, float*);
template void winograd_forward<float>(const WinogradMethod&,
                                      View<const float>,
                                      const ForwardFilters<float>&,
                                      const ConvolutionOutput<float>&,
                                      float*);
template bool winograd_prepare<double>(const WinogradMethod&, const double*, Index, double*);
template void winograd_forward<double>(const WinogradMethod&,
                                       View<const double>,
                                       const ForwardFilters<double>&,
                                       const ConvolutionOutput<double>&,
                                       double*);
template void winograd_backward_data<float>(const WinogradMethod&,
                                            View<const float>,
                                            const Filters<float>&,
                                            const Region&,
                                            const InputGradient<float>&,
                                            float*);
template void winograd_backward_data<double>(const WinogradMethod&,
                                             View<const double>,
                                             const Filters<double>&,
                                             const Region&,
                                             const InputGradient<double>&,
                                             double*);
template void winograd_backward_weights<float>(const WinogradMethod&,
                                               View<const float>,
                                               View<const float>,
                                               const Region&,
                                               Index,
                                               float*,
                                               float*);
template void winograd_backward_weights<double>(const WinogradMethod&,
                                                View<const double>,
                                                View<const double>,
                                                const Region&,
                                                Index,
                                                double*,
                                                double*);

}  // namespace engine
