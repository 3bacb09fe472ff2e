#include "engine/ops/winograd.h"

#include <algorithm>
#include <array>

#include "engine/ops/direct_lanes.h"
#include "engine/ops/lines.h"
#include "engine/ops/winograd_tiles.h"

namespace engine {

namespace {

using partitioner::intersect;

constexpr Index kTransformedElements = Index{1} << 22U;  // of tiles that are in work at once
constexpr Index kMostTiles = 56;
constexpr Index kFewestTiles = 14;

// The most tiles that are transformed, multiplied and transformed back together.
Index tiles_at_once(Index side, Index channels, Index filters) {
  const Index elements = positions_of(side) * (blocks_of(channels) + blocks_of(filters)) * kLanes;
  return std::clamp(kTransformedElements / elements, kFewestTiles, kMostTiles);
}

// Where the arrays of LaneKernels have the transforms of tiles of side x side outputs.
std::size_t transform_number(Index side) {
  return static_cast<std::size_t>(side / 2 - 1);
}

// Channels of block number `block` of `channels`.
Range block_channels(const Range& channels, Index block) {
  const Index first = channels.begin + block * kLanes;
  return {first, std::min(first + kLanes, channels.end)};
}

// A square of kLanes channels, (side, side, kLanes), of views that hold those channels otherwise.
template <class T>
using SquareCopy = std::array<T, static_cast<std::size_t>(kLargestWindow* kLargestWindow* kLanes)>;

// Calls visit(copy, cell) for each number of the copy that the view has a cell for.
template <class T, class V, class Visit>
void for_each_copied(SquareCopy<T>& copy,
                     const View<V>& view,
                     const Range& channels,
                     const SquareRun& square,
                     Index side,
                     Visit visit) {
  const TileCells& inside = square.inside;
  for (Index row = inside.row_begin; row < inside.row_end; ++row) {
    for (Index col = inside.col_begin; col < inside.col_end; ++col) {
      T* lanes = copy.data() + (row * side + col) * kLanes;
      for (Index c = channels.begin; c < channels.end; ++c) {
        visit(lanes[c - channels.begin],
              view.at(square.image, c, square.row + row, square.col + col));
      }
    }
  }
}

// Squares of the channels `squares.cells.channels` of a view, to be transformed.
template <class T>
struct SquareSource {
  void (*transform)(const SquareTransform<T>&) = nullptr;
  View<const T> view;
  TileSquares squares;
};

template <class T>
void transform_run(const SquareSource<T>& from,
                   const Range& channels,
                   const SquareRun& run,
                   Index tile_side,
                   SquareTransform<T> job) {
  job.inside = run.inside;
  if (is_whole_block(channels, from.view, kLanes)) {
    job.cells = line_start(from.view, channels, run.image, run.row, run.col);
    job.row_step = from.view.row_stride();
    job.tile_step = tile_side * kLanes;
    job.tiles = run.tiles;
    from.transform(job);
    return;
  }
  alignas(kAlignment) SquareCopy<T> copy{};
  job.cells = copy.data();
  job.row_step = from.squares.side * kLanes;
  job.tiles = 1;
  for (Index tile = 0; tile < run.tiles; ++tile) {
    SquareRun square = run;
    square.col += tile * tile_side;
    for_each_copied(
        copy, from.view, channels, square, from.squares.side, [](T& lane, const T& cell) {
          lane = cell;
        });
    from.transform(job);
    job.positions += kLanes;
  }
}

// Transforms the squares of `tiles`. Called by all threads of a team.
template <class T>
void transform_squares(const SquareSource<T>& from,
                       const TileGrid& grid,
                       const Range& tiles,
                       const TransformedTiles<T>& to) {
  for_each_share(to.blocks, tiles.size(), [&](Index block, const Range& share) {
    const Range channels = block_channels(from.squares.cells.channels, block);
    const Range numbers{tiles.begin + share.begin, tiles.begin + share.end};
    grid.for_each_run(numbers, from.squares, [&](const SquareRun& run) {
      SquareTransform<T> job;
      job.positions = to.at(0, block, run.first - tiles.begin);
      job.position_step = to.position_stride();
      transform_run(from, channels, run, grid.side(), job);
    });
  });
}

// Where sums go: to the channels and cells of `region`, with a bias or none.
template <class T>
struct SumTarget {
  void (*transform)(const SumTransform<T>&) = nullptr;
  View<T> view;
  Region region;
  const T* bias = nullptr;  // of region.channels
  bool add = false;         // to what is there, or assign
};

template <class T>
void transform_run(const SumTarget<T>& to,
                   const Range& channels,
                   const SquareRun& run,
                   Index tile_side,
                   SumTransform<T> job) {
  job.inside = run.inside;
  alignas(kAlignment) std::array<T, static_cast<std::size_t>(kLanes)> bias{};
  if (to.bias != nullptr) {
    std::copy_n(to.bias + channels.begin - to.region.channels.begin, channels.size(), bias.begin());
    job.bias = bias.data();
  }
  if (is_whole_block(channels, to.view, kLanes)) {
    job.cells = line_start(to.view, channels, run.image, run.row, run.col);
    job.row_step = to.view.row_stride();
    job.tile_step = tile_side * kLanes;
    job.tiles = run.tiles;
    job.add = to.add;
    to.transform(job);
    return;
  }
  alignas(kAlignment) SquareCopy<T> copy{};
  job.cells = copy.data();
  job.row_step = tile_side * kLanes;
  job.tiles = 1;
  for (Index tile = 0; tile < run.tiles; ++tile) {
    to.transform(job);
    SquareRun square = run;
    square.col += tile * tile_side;
    for_each_copied(copy, to.view, channels, square, tile_side, [&](const T& sum, T& cell) {
      cell = to.add ? cell + sum : sum;
    });
    job.positions += kLanes;
  }
}

// Transforms the sums of `tiles` back. Called by all threads of a team.
template <class T>
void transform_sums(const TransformedTiles<T>& sums,
                    const TileGrid& grid,
                    const Range& tiles,
                    const SumTarget<T>& to) {
  const TileSquares outputs{grid.side(), 0, to.region};
  for_each_share(sums.blocks, tiles.size(), [&](Index block, const Range& share) {
    const Range channels = block_channels(to.region.channels, block);
    const Range numbers{tiles.begin + share.begin, tiles.begin + share.end};
    grid.for_each_run(numbers, outputs, [&](const SquareRun& run) {
      SumTransform<T> job;
      job.positions = sums.at(0, block, run.first - tiles.begin);
      job.position_step = sums.position_stride();
      transform_run(to, channels, run, grid.side(), job);
    });
  });
}

// sums = weights * tiles at every position, for `count` tiles. Called by all threads of a team.
template <class T>
void multiply(const T* weights,
              Index channels,
              Index positions,
              Index count,
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
        kernels.pixel_product({tiles.at(position, 0, first),
                               tiles.block_stride(),
                               channels,
                               weights + (position * sums.blocks + block) * channels * kLanes,
                               channels * kLanes,
                               sums.at(position, block, first),
                               sums.block_stride()},
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
};

// To (position, block of outs, in, kLanes). Called by all threads of a team.
template <class T>
void transform_filters(
    Index side, Index outs, Index ins, const FilterSource<T>& from, T* transformed) {
  const auto transform = lane_kernels<T>().transform_filters[transform_number(side)];
  const Index blocks = blocks_of(outs);
  for_each_share(blocks, ins, [&](Index block, const Range& share) {
    FilterTransform<T> job;
    job.taps = from.taps + block * kLanes * from.out_step + share.begin * from.in_step;
    job.lane_step = from.out_step;
    job.channel_step = from.in_step;
    job.lanes = std::min(kLanes, outs - block * kLanes);
    job.channels = share.size();
    job.turned = from.turned;
    job.positions = transformed + (block * ins + share.begin) * kLanes;
    job.position_step = blocks * ins * kLanes;
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

template <class T>
void convolve(const TiledConvolution<T>& job, ConvolutionWorkspace<T>& workspace) {
  const TileGrid grid(job.side, job.out.region);
  const Index channels = job.in.squares.cells.channels.size();
  const Index filters = job.out.region.channels.size();
  const Index at_once = tiles_at_once(job.side, channels, filters);
  const Index positions = positions_of(job.side);
  const TransformedTiles<T> tiles{workspace.tiles.data(), blocks_of(channels), at_once};
  const TransformedTiles<T> sums{
      tiles.data + positions * tiles.position_stride(), blocks_of(filters), at_once};
  T* weights = workspace.weights.data();
#pragma omp parallel
  {
    transform_filters(job.side, filters, channels, job.filters, weights);
    for_each_run(grid.count(), at_once, [&](Index first, Index count) {
      const Range batch{first, first + count};
      transform_squares(job.in, grid, batch, tiles);
      multiply(weights, channels, positions, count, tiles, sums);
      transform_sums(sums, grid, batch, job.out);
    });
  }
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

// Gradients of transformed filters, (position, block of filters, channel, kLanes), channels in
// whole blocks.
template <class T>
struct FilterSums {
  T* data = nullptr;
  Index blocks = 0;
  Index channels = 0;

  [[nodiscard]] Index block_stride() const { return channels * kLanes; }
  [[nodiscard]] Index position_stride() const { return blocks * block_stride(); }
  [[nodiscard]] T* at(Index position, Index block, Index channel) const {
    return data + position * position_stride() + block * block_stride() + channel * kLanes;
  }
};

// sums (+)= tiles * gradients at every position, over `count` tiles. Called by all threads of a
// team.
template <class T>
void add_products(const TransformedTiles<T>& tiles,
                  const TransformedTiles<T>& gradients,
                  Index positions,
                  Index count,
                  bool assign,
                  const FilterSums<T>& sums) {
  const Index pairs = (gradients.blocks + kMostBlocks - 1) / kMostBlocks;
  const Index runs = sums.channels / kProductChannels;
#pragma omp for collapse(3) schedule(static)
  for (Index position = 0; position < positions; ++position) {
    for (Index pair = 0; pair < pairs; ++pair) {
      for (Index run = 0; run < runs; ++run) {
        const Index block = pair * kMostBlocks;
        const Index channel = run * kProductChannels;
        lane_kernels<T>().weight_product(
            {tiles.at(position, channel / kLanes, 0) + channel % kLanes,
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

// Transforms `sums` back and adds them to `filters` filters of plain weights. Called by all threads
// of a team.
template <class T>
void add_filters(Index side,
                 const FilterSums<T>& sums,
                 const ConvolutionShape& shape,
                 Index filters,
                 T* weight_gradient) {
  const auto transform = lane_kernels<T>().transform_filter_gradients[transform_number(side)];
  for_each_share(sums.blocks, shape.channels, [&](Index block, const Range& share) {
    FilterGradientTransform<T> job;
    job.positions = sums.at(0, block, share.begin);
    job.position_step = sums.position_stride();
    job.taps = weight_gradient + block * kLanes * shape.row() + share.begin * shape.taps();
    job.lane_step = shape.row();
    job.channel_step = shape.taps();
    job.lanes = std::min(kLanes, filters - block * kLanes);
    job.channels = share.size();
    transform(job);
  });
}

}  // namespace

ConvolutionWorkspaceSize winograd_workspace(const WinogradMethod& method,
                                            const Range& filters,
                                            bool training) {
  const auto& [shape, side] = method;
  if (filters.empty()) {
    return {};
  }
  const Index positions = positions_of(side);
  const Index ins = blocks_of(shape.channels);
  const Index outs = blocks_of(filters.size());
  const Index at_once = tiles_at_once(side, shape.channels, filters.size());
  const Index forward = outs * shape.channels * kLanes;
  const Index backward = std::max(ins * filters.size() * kLanes, outs * ins * kLanes * kLanes);
  ConvolutionWorkspaceSize size;
  size.weights = positions * (training ? std::max(forward, backward) : forward);
  size.tiles = positions * ((ins + outs) * at_once + 2) * kLanes;
  return size;
}

template <class T>
void winograd_forward(const WinogradMethod& method,
                      View<const T> in,
                      const T* weight,
                      const T* bias,
                      const Region& region,
                      View<T> out,
                      ConvolutionWorkspace<T>& workspace) {
  const auto& [shape, side] = method;
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const std::size_t number = transform_number(side);
  TiledConvolution<T> job;
  job.side = side;
  job.in = {kernels.transform_input[number],
            in,
            {window_side(side), -shape.padding, window_of(shape, region)}};
  job.filters = {weight, shape.row(), shape.taps(), false};
  job.out = {kernels.transform_sums[number], out, region, bias, false};
  convolve(job, workspace);
}

template <class T>
void winograd_backward_data(const WinogradMethod& method,
                            View<const T> out_gradient,
                            const Filters<T>& filters,
                            const Region& region,
                            const Region& map,
                            View<T> in_gradient,
                            ConvolutionWorkspace<T>& workspace) {
  const auto& [shape, side] = method;
  const Region inputs = intersect(map, window_of(shape, region));
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
  job.out = {kernels.transform_sums[number], in_gradient, inputs, nullptr, true};
  convolve(job, workspace);
}

template <class T>
void winograd_backward_weights(const WinogradMethod& method,
                               View<const T> in,
                               View<const T> out_gradient,
                               const Region& region,
                               Index first_filter,
                               T* weight_gradient,
                               ConvolutionWorkspace<T>& workspace) {
  const auto& [shape, side] = method;
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const std::size_t number = transform_number(side);
  const TileGrid grid(side, region);
  const Index filters = region.channels.size();
  const Index positions = positions_of(side);
  const Index at_once = tiles_at_once(side, shape.channels, filters);
  const TransformedTiles<T> tiles{workspace.tiles.data(), blocks_of(shape.channels), at_once};
  const TransformedTiles<T> gradients{
      tiles.data + positions * tiles.position_stride(), blocks_of(filters), at_once};
  const SquareSource<T> windows{kernels.transform_input[number],
                                in,
                                {window_side(side), -shape.padding, window_of(shape, region)}};
  const SquareSource<T> outputs{
      kernels.transform_gradient[number], out_gradient, {side, 0, region}};
  const FilterSums<T> sums{workspace.weights.data(), gradients.blocks, tiles.blocks * kLanes};
  T* first_gradient = weight_gradient + (region.channels.begin - first_filter) * shape.row();
#pragma omp parallel
  {
    for_each_run(grid.count(), at_once, [&](Index first, Index count) {
      const Range batch{first, first + count};
      transform_squares(windows, grid, batch, tiles);
      transform_squares(outputs, grid, batch, gradients);
      add_products(tiles, gradients, positions, count, first == 0, sums);
    });
    add_filters(side, sums, shape, filters, first_gradient);
  }
}

template void winograd_forward<float>(const WinogradMethod&,
                                      View<const float>,
                                      const float*,
                                      const float*,
                                      const Region&,
                                      View<float>,
                                      ConvolutionWorkspace<float>&);
template void winograd_forward<double>(const WinogradMethod&,
                                       View<const double>,
                                       const double*,
                                       const double*,
                                       const Region&,
                                       View<double>,
                                       ConvolutionWorkspace<double>&);
template void winograd_backward_data<float>(const WinogradMethod&,
                                            View<const float>,
                                            const Filters<float>&,
                                            const Region&,
                                            const Region&,
                                            View<float>,
                                            ConvolutionWorkspace<float>&);
template void winograd_backward_data<double>(const WinogradMethod&,
                                             View<const double>,
                                             const Filters<double>&,
                                             const Region&,
                                             const Region&,
                                             View<double>,
                                             ConvolutionWorkspace<double>&);
template void winograd_backward_weights<float>(const WinogradMethod&,
                                               View<const float>,
                                               View<const float>,
                                               const Region&,
                                               Index,
                                               float*,
                                               ConvolutionWorkspace<float>&);
template void winograd_backward_weights<double>(const WinogradMethod&,
                                                View<const double>,
                                                View<const double>,
                                                const Region&,
                                                Index,
                                                double*,
                                                ConvolutionWorkspace<double>&);

}  // namespace engine
