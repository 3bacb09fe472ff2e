#include "engine/ops/convolution/winograd.h"

#include <algorithm>

#include "engine/ops/convolution/channel_blocks.h"
#include "engine/ops/convolution/winograd_blocking.h"
#include "engine/ops/convolution/winograd_squares.h"

namespace tessera::engine {

namespace {

// Some input channels of the tiles of a batch.
struct TileInputs {
  Index tiles = 0;
  Range channels;       // of the transformed tiles
  bool assign = false;  // sums, or add to them
};

// sums (+)= filters * tiles at every position, for such inputs, which the filters begin with.
// Called by all threads of a team.
template <class T>
void multiply(const TransformedFilters<T>& filters,
              Index positions,
              const TileInputs& inputs,
              const TransformedTiles<T>& tiles,
              const TransformedTiles<T>& sums) {
  const BlockKernels<T>& kernels = block_kernels<T>();
  const Index pairs = (sums.blocks + kMostBlocks - 1) / kMostBlocks;
#pragma omp for collapse(2) schedule(static) nowait
  for (Index position = 0; position < positions; ++position) {
    for (Index pair = 0; pair < pairs; ++pair) {
      const Index block = pair * kMostBlocks;
      const Index blocks = std::min(kMostBlocks, sums.blocks - block);
      for_each_run(inputs.tiles, kernels.product_pixels, [&](Index first, Index pixels) {
        kernels.pixel_product({tiles.at(position, inputs.channels.begin / kBlockChannels, first),
                               tiles.block_stride(),
                               inputs.channels.size(),
                               filters.at(position, block, 0),
                               filters.block_stride(),
                               sums.at(position, block, first),
                               sums.block_stride(),
                               inputs.assign},
                              pixels,
                              blocks);
      });
    }
  }
  wait_for_team();
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

// Multiplies `outs` outputs by `ins` inputs. Called by all threads of a team.
template <class T>
void transform_filters(Index side,
                       Index outs,
                       Index ins,
                       const FilterSource<T>& from,
                       const TransformedFilters<T>& to) {
  const auto transform = block_kernels<T>().transform_filters[transform_number(side)];
  for_each_share(blocks_of(outs), ins, [&](Index block, const Range& share) {
    FilterTransform<T> job;
    job.taps = from.taps + block * kBlockChannels * from.out_step + share.begin * from.in_step;
    job.filter_step = from.out_step;
    job.channel_step = from.in_step;
    job.filters = std::min(kBlockChannels, outs - block * kBlockChannels);
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

// Calls `done` for the lines of rows of tiles. Called by all threads of a team.
void finish_rows(const TileGrid& grid,
                 const Range& rows,
                 const Region& region,
                 const LineDone& done) {
  const Index blocks = blocks_of(region.channels.size());
#pragma omp for collapse(2) schedule(static) nowait
  for (Index number = rows.begin; number < rows.end; ++number) {
    for (Index block = 0; block < blocks; ++block) {
      const TileGrid::Lines lines = grid.lines_of(number, region);
      done(block_channels(region.channels, block), lines.image, lines.rows);
    }
  }
  wait_for_team();
}

// What all teams of a convolution share.
template <class T>
struct TeamWork {
  const TiledConvolution<T>& job;
  const TileGrid grid;
  const LineDone& done;
  const Blocking blocking;
  const WinogradScratch<T> scratch;
  Index teams = 1;
  bool prepared = false;  // the filters are there, all of them
};

// Tiles that are transformed, and the rows of tiles that are complete when they are computed.
template <class T>
struct TileBatch {
  TransformedTiles<T> tiles;
  Range numbers;
  Range rows;
};

// Some output channels of a batch; `array` is where their filters and sums go, those of all filters
// are where they belong. Called by all threads of a team.
template <class T>
void convolve_part(const TeamWork<T>& work,
                   const TileBatch<T>& batch,
                   const Range& channels,
                   Index array) {
  const TiledConvolution<T>& job = work.job;
  const Blocking& blocking = work.blocking;
  const TiledConvolution<T> part = part_of(job, channels);
  const auto sums = work.scratch.sums(batch.tiles, blocks_of(channels.size()), array);
  const Range ins{0, job.in.squares.cells.channels.size()};
  for_each_part(blocking.part_channels, ins, [&](const Range& inputs) {
    const Index first = channels.begin - job.out.region.channels.begin;
    const auto filters = work.scratch.part(array, first, inputs.begin);
    if (!work.prepared && (batch.numbers.begin == 0 || !blocking.kept)) {
      transform_filters(
          job.side, channels.size(), inputs.size(), part.filters.from(0, inputs.begin), filters);
    }
    multiply(filters,
             positions_of(job.side),
             {batch.numbers.size(), inputs, inputs.begin == 0},
             batch.tiles,
             sums);
  });
  transform_sums(sums, work.grid, batch.numbers, part.out);
  if (work.done) {
    finish_rows(work.grid, batch.rows, part.out.region, work.done);
  }
}

// All output channels of a batch, of which the scratch has room for one block of inputs at a time.
// Called by all threads.
template <class T>
void convolve_by_inputs(const TeamWork<T>& work, const TileBatch<T>& batch) {
  const TiledConvolution<T>& job = work.job;
  const Range& outs = job.out.region.channels;
  const auto sums = work.scratch.sums(batch.tiles, blocks_of(outs.size()));
  const Range& ins = job.in.squares.cells.channels;
  for_each_part(kBlockChannels, {0, ins.size()}, [&](const Range& inputs) {
    SquareSource<T> source = job.in;
    source.squares.cells.channels = {ins.begin + inputs.begin, ins.begin + inputs.end};
    transform_squares(source, work.grid, batch.numbers, batch.tiles);
    const auto filters = work.scratch.part(0, 0, inputs.begin);
    if (!work.prepared && batch.numbers.begin == 0) {
      transform_filters(
          job.side, outs.size(), inputs.size(), job.filters.from(0, inputs.begin), filters);
    }
    multiply(filters,
             positions_of(job.side),
             {batch.numbers.size(), {0, inputs.size()}, inputs.begin == 0},
             batch.tiles,
             sums);
  });
  transform_sums(sums, work.grid, batch.numbers, job.out);
  if (work.done) {
    finish_rows(work.grid, batch.rows, job.out.region, work.done);
  }
}

// The tiles of one team. Called by all its threads.
template <class T>
void convolve_tiles(const TeamWork<T>& work, Index team) {
  const Range own = share_of(team, work.teams, work.grid.count());
  const TransformedTiles<T> tiles = work.scratch.tiles(work.blocking.arrays, team, work.teams);
  for_each_run(own.size(), tiles.tiles, [&](Index first, Index count) {
    const Range numbers{own.begin + first, own.begin + first + count};
    const Range rows = intersect(work.grid.rows_ended_in(numbers), work.grid.rows_begun_in(own));
    const TileBatch<T> batch{tiles, numbers, rows};
    if (work.blocking.by_inputs) {
      convolve_by_inputs(work, batch);
      return;
    }
    transform_squares(work.job.in, work.grid, numbers, tiles);
    for_each_part(work.blocking.part_blocks * kBlockChannels,
                  work.job.out.region.channels,
                  [&](const Range& channels) { convolve_part(work, batch, channels, 0); });
  });
}

// All tiles, of which each team has some output channels: filters of a part are transformed and
// meet the tiles in one place.
template <class T>
void convolve_channels(const TeamWork<T>& work, Index teams) {
  const TransformedTiles<T> tiles = work.scratch.tiles(work.blocking.arrays, 0, 1);
  for_each_run(work.grid.count(), tiles.tiles, [&](Index first, Index count) {
    const Range numbers{first, first + count};
    const TileBatch<T> batch{tiles, numbers, work.grid.rows_ended_in(numbers)};
    run_team([&] { transform_squares(work.job.in, work.grid, numbers, tiles); });
    run_part_teams(
        work.blocking, teams, work.job.out.region.channels, [&](const Range& channels, Index team) {
          convolve_part(work, batch, channels, team);
        });
  });
}

// Lines of tiles of several teams: no team saw all of them done.
template <class T>
void finish_shared_rows(const TeamWork<T>& work) {
  const Region& region = work.job.out.region;
  for (Index team = 1; team < work.teams; ++team) {
    const Index tiles = work.grid.count();
    const Range rows = work.grid.rows_ended_in(share_of(team, work.teams, tiles));
    const Range begun = work.grid.rows_begun_in(share_of(team, work.teams, tiles));
    if (!rows.empty() && rows.begin < begun.begin) {
      run_team([&] { finish_rows(work.grid, {rows.begin, rows.begin + 1}, region, work.done); });
    }
  }
}

// `prepared`: the filters are there, all of them.
template <class T>
void convolve(const TiledConvolution<T>& job, const LineDone& done, bool prepared, T* workspace) {
  const TileGrid grid(job.side, job.out.region);
  const Index ins = job.in.squares.cells.channels.size();
  const Index outs = job.out.region.channels.size();
  const PassBytes bytes(job.side, ins, outs, static_cast<Index>(sizeof(T)), 1);
  const Blocking blocking = blocking_in_cache(
      blocking_of(job.side, ins, outs, grid.count()), bytes, cache_blocks().shared_bytes);
  const WinogradScratch<T> scratch(
      workspace, job.side, blocking, blocking.by_inputs ? 1 : blocks_of(ins));
  const Index teams = teams_of(blocking);
  if (teams > 1 && !prepared) {
    run_team([&] { transform_filters(job.side, outs, ins, job.filters, scratch.filters()); });
  }
  const TeamWork<T> work{job, grid, done, blocking, scratch, teams, prepared || teams > 1};
  if (threads() > 1 && threads() <= blocking.arrays) {
    convolve_channels(work, threads());
    return;
  }
  run_teams(teams, [&](Index team) { convolve_tiles(work, team); });
  if (done) {
    finish_shared_rows(work);
  }
}

}  // namespace

Index WinogradKernel::workspace(const Region& region, ConvolutionPass pass) const {
  if (region.empty()) {
    return 0;
  }
  const bool to_data = pass == ConvolutionPass::BackwardData;
  const Index filters = region.channels.size();
  const Index ins = to_data ? filters : shape.channels;
  const Index outs = to_data ? shape.channels : filters;
  const TileGrid grid(side, to_data ? window_of(shape, region) : region);
  const Blocking blocking = blocking_of(side, ins, outs, grid.count());
  const bool to_weights = pass == ConvolutionPass::BackwardWeights;
  const Index filter_arrays =
      to_weights && blocking.kept ? sum_runs(blocking, side, grid.count()) : blocking.arrays;
  const WinogradScratch<float> scratch(nullptr, side, blocking, blocks_of(ins));
  return scratch.elements(filter_arrays);
}

template <class T>
bool WinogradKernel::prepare(const T* weight, Index filters, T* workspace) const {
  const Blocking blocking = blocking_of(side, shape.channels, filters, 1);
  if (!blocking.kept) {
    return false;
  }
  const WinogradScratch<T> scratch(workspace, side, blocking, blocks_of(shape.channels));
  const FilterSource<T> from = filters_forward(shape, weight);
  run_team([&] { transform_filters(side, filters, shape.channels, from, scratch.filters()); });
  return true;
}

template <class T>
void WinogradKernel::forward(const ForwardArguments<T>& given) const {
  const View<const T>& in = given.in;
  const ForwardFilters<T>& filters = given.filters;
  const ConvolutionOutput<T>& out = given.out;
  const Region& region = out.region;
  const BlockKernels<T>& kernels = block_kernels<T>();
  const std::size_t number = transform_number(side);
  TiledConvolution<T> job;
  job.side = side;
  job.in = {kernels.transform_input[number],
            in,
            {window_side(side), -shape.padding.rows, window_of(shape, region)}};
  job.filters = filters_forward(shape, filters.weight);
  job.out = {kernels.transform_sums[number], out.cells, region, filters.bias, false};
  convolve(job, out.done, filters.prepared, given.workspace);
}

template <class T>
void WinogradKernel::backward_data(const BackwardDataArguments<T>& given) const {
  const View<const T>& out_gradient = given.out_gradient;
  const Filters<T>& filters = given.filters;
  const Region& region = given.region;
  const InputGradient<T>& in_gradient = given.in_gradient;
  const Region inputs = intersect(in_gradient.map, window_of(shape, region));
  if (inputs.empty()) {
    return;
  }
  const BlockKernels<T>& kernels = block_kernels<T>();
  const std::size_t number = transform_number(side);
  const T* weight = filters.weight + (region.channels.begin - filters.first) * shape.row();
  TiledConvolution<T> job;
  job.side = side;
  job.in = {kernels.transform_input[number],
            out_gradient,
            {window_side(side), shape.padding.rows - (kFilterSide - 1), region}};
  job.filters = {weight, shape.taps(), shape.row(), true};
  job.out = {
      kernels.transform_sums[number], in_gradient.cells, inputs, nullptr, !in_gradient.assign};
  convolve(job, {}, false, given.workspace);
}

template bool WinogradKernel::prepare(const float*, Index, float*) const;
template bool WinogradKernel::prepare(const double*, Index, double*) const;
template void WinogradKernel::forward(const ForwardArguments<float>&) const;
template void WinogradKernel::backward_data(const BackwardDataArguments<float>&) const;
template void WinogradKernel::forward(const ForwardArguments<double>&) const;
template void WinogradKernel::backward_data(const BackwardDataArguments<double>&) const;

}  // namespace tessera::engine
