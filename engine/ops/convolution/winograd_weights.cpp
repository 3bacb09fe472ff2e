#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/winograd.h"
#include "engine/ops/convolution/winograd_blocking.h"
#include "engine/ops/convolution/winograd_squares.h"

namespace tessera::engine {

namespace {

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
  const Index runs = blocks_of(inputs.size()) * kBlockChannels / kProductChannels;
#pragma omp for collapse(3) schedule(static) nowait
  for (Index position = 0; position < positions; ++position) {
    for (Index pair = 0; pair < pairs; ++pair) {
      for (Index run = 0; run < runs; ++run) {
        const Index block = pair * kMostBlocks;
        const Index channel = run * kProductChannels;
        const Index input = inputs.begin + channel;
        block_kernels<T>().weight_product(
            {tiles.at(position, input / kBlockChannels, 0) + input % kBlockChannels,
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
  wait_for_team();
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
  const auto transform = block_kernels<T>().transform_filter_gradients[transform_number(side)];
  for_each_share(blocks_of(filters), inputs.size(), [&](Index block, const Range& share) {
    FilterGradientTransform<T> job;
    job.positions = sums.at(0, block, share.begin);
    job.position_step = sums.position_stride();
    job.taps = weight_gradient + block * kBlockChannels * shape.row() +
               (inputs.begin + share.begin) * shape.taps();
    job.filter_step = shape.row();
    job.channel_step = shape.taps();
    job.filters = std::min(kBlockChannels, filters - block * kBlockChannels);
    job.channels = share.size();
    transform(job);
  });
}

struct WeightBatch {
  Range tiles;
  bool assign = false;  // sums, or add to them
  bool last = false;    // of those that are summed
};

// What all teams share that sum the gradients of filters.
template <class T>
struct WeightWork {
  const ConvolutionShape& shape;
  const SquareSource<T> windows;
  const SquareSource<T> squares;  // of the output's gradient
  const TileGrid grid;
  const Blocking blocking;
  const WinogradScratch<T> scratch;
  Index runs = 1;
  Index teams = 1;
  T* weight_gradient = nullptr;  // of the first filter
};

// What a batch of tiles, which are transformed, says of some filters. Their sums are number
// `array`: those of all filters, or of a part. If `last`, adds them to the gradients of the
// weights. Called by all threads of a team.
template <class T>
void sum_part(const WeightWork<T>& work,
              const TransformedTiles<T>& tiles,
              const WeightBatch& batch,
              const Range& filters,
              Index array) {
  const Index side = work.grid.side();
  const Blocking& blocking = work.blocking;
  const Index first = filters.begin - work.squares.squares.cells.channels.begin;
  SquareSource<T> source = work.squares;
  source.squares.cells.channels = filters;
  const auto gradients =
      work.scratch.sums(tiles, blocks_of(filters.size()), blocking.kept ? 0 : array);
  transform_squares(source, work.grid, batch.tiles, gradients);
  for_each_part(blocking.part_channels, {0, work.shape.channels}, [&](const Range& inputs) {
    const auto sums = work.scratch.part(array, first, inputs.begin);
    const Index count = batch.tiles.size();
    add_products(tiles, inputs, gradients, positions_of(side), count, batch.assign, sums);
    if (batch.last) {
      T* gradient = work.weight_gradient + first * work.shape.row();
      add_filters(side, sums, work.shape, filters.size(), inputs, gradient);
    }
  });
}

// Sums what one run of tiles says. If it is the only one, adds that to the gradients of the
// weights. Called by all threads of the team.
template <class T>
void sum_run(const WeightWork<T>& work, Index run, Index team) {
  const Blocking& blocking = work.blocking;
  const Range own = share_of(run, work.runs, work.grid.count());
  const Index arrays = blocking.kept ? work.runs : blocking.arrays;
  const TransformedTiles<T> tiles = work.scratch.tiles(arrays, team, work.teams);
  for_each_run(own.size(), tiles.tiles, [&](Index first, Index count) {
    WeightBatch batch{{own.begin + first, own.begin + first + count}};
    batch.assign = first == 0 || !blocking.kept;
    batch.last = work.runs == 1 && (batch.tiles.end == own.end || !blocking.kept);
    transform_squares(work.windows, work.grid, batch.tiles, tiles);
    const Range& outs = work.squares.squares.cells.channels;
    for_each_part(blocking.part_blocks * kBlockChannels, outs, [&](const Range& filters) {
      sum_part(work, tiles, batch, filters, run);
    });
  });
}

// Adds what all tiles say to the gradients of the weights, of which each team has those of some
// filters.
template <class T>
void sum_channels(const WeightWork<T>& work, Index teams) {
  const Blocking& blocking = work.blocking;
  const TransformedTiles<T> tiles = work.scratch.tiles(blocking.arrays, 0, 1);
  for_each_run(work.grid.count(), tiles.tiles, [&](Index first, Index count) {
    const WeightBatch batch{{first, first + count}, true, true};
    run_team([&] { transform_squares(work.windows, work.grid, batch.tiles, tiles); });
    const Range& outs = work.squares.squares.cells.channels;
    run_part_teams(blocking, teams, outs, [&](const Range& filters, Index team) {
      sum_part(work, tiles, batch, filters, team);
    });
  });
}

// Adds the sums of all runs, in their order, to the gradients of the weights. Called by all
// threads.
template <class T>
void add_runs(const WeightWork<T>& work) {
  const TransformedFilters<T> total = work.scratch.filters(0);
  const Index elements = work.scratch.filter_elements();
#pragma omp for schedule(static) nowait
  for (Index line = 0; line < elements / kBlockChannels; ++line) {
    T* sum = total.data + line * kBlockChannels;
    for (Index run = 1; run < work.runs; ++run) {
      const T* of_run = sum + run * elements;
      for (Index lane = 0; lane < kBlockChannels; ++lane) {
        sum[lane] += of_run[lane];
      }
    }
  }
  wait_for_team();
  const Range ins{0, work.shape.channels};
  const Index outs = work.squares.squares.cells.channels.size();
  add_filters(work.grid.side(), total, work.shape, outs, ins, work.weight_gradient);
}

}  // namespace

template <class T>
void WinogradKernel::backward_weights(const BackwardWeightsArguments<T>& given) const {
  const View<const T>& in = given.in;
  const View<const T>& out_gradient = given.out_gradient;
  const Region& region = given.region;
  const BlockKernels<T>& kernels = block_kernels<T>();
  const std::size_t number = transform_number(side);
  const TileGrid grid(side, region);
  const Index filters = region.channels.size();
  const Blocking planned = blocking_of(side, shape.channels, filters, grid.count());
  constexpr Index kMoves = 2;  // sums are read and written
  const PassBytes bytes(side, shape.channels, filters, static_cast<Index>(sizeof(T)), kMoves);
  const Blocking blocking = blocking_in_cache(planned, bytes, cache_blocks().shared_bytes);
  const SquareSource<T> windows{kernels.transform_input[number],
                                in,
                                {window_side(side), -shape.padding.rows, window_of(shape, region)}};
  const SquareSource<T> squares{
      kernels.transform_gradient[number], out_gradient, {side, 0, region}};
  const Index runs = sum_runs(planned, side, grid.count());
  const Index teams = runs % threads() == 0 ? teams_of(blocking) : 1;
  const WeightWork<T> work{shape,
                           windows,
                           squares,
                           grid,
                           blocking,
                           {given.workspace, side, blocking, blocks_of(shape.channels)},
                           runs,
                           teams,
                           given.weights(shape.row())};
  if (threads() > 1 && threads() <= blocking.arrays) {
    sum_channels(work, threads());
    return;
  }
  run_teams(work.teams, [&](Index team) {
    const Range own = share_of(team, work.teams, runs);
    for (Index run = own.begin; run < own.end; ++run) {
      sum_run(work, run, team);
    }
  });
  if (runs > 1) {
    run_team([&] { add_runs(work); });
  }
}

template void WinogradKernel::backward_weights(const BackwardWeightsArguments<float>&) const;
template void WinogradKernel::backward_weights(const BackwardWeightsArguments<double>&) const;

}  // namespace tessera::engine
