#include "engine/ops/winograd.h"

#include <algorithm>
#include <array>

#include "engine/ops/direct_lanes.h"

namespace engine {

namespace {

using partitioner::intersect;

constexpr Index kFilter = 3;
constexpr Index kLargestSide = 4;
constexpr Index kLargestWindow = kLargestSide + kFilter - 1;
constexpr Index kTransformedElements = Index{1} << 22U;  // of tiles that are in work at once
constexpr Index kMostTiles = 224;
constexpr Index kFewestTiles = 14;

Index blocks_of(Index channels) {
  return (channels + kLanes - 1) / kLanes;
}

Index positions_of(Index side) {
  return (side + 2) * (side + 2);
}

// Tiles that are transformed, multiplied and transformed back together.
Index tiles_at_once(Index side, Index channels, Index filters) {
  const Index elements = positions_of(side) * (blocks_of(channels) + blocks_of(filters)) * kLanes;
  return std::clamp(kTransformedElements / elements, kFewestTiles, kMostTiles);
}

// Positions of transformed tiles, (position, channel block, tile, kLanes). Positions are a cache
// line further apart than they need be: else all of a tile would compete for the same few lines.
template <class T>
struct Transformed {
  T* data = nullptr;
  Index blocks = 0;
  Index tiles = 0;

  [[nodiscard]] Index block_stride() const { return tiles * kLanes; }
  [[nodiscard]] Index position_stride() const { return blocks * block_stride() + kLanes; }
  [[nodiscard]] T* at(Index position, Index block, Index tile) const {
    return data + position * position_stride() + block * block_stride() + tile * kLanes;
  }
};

// The tiles that cover a region.
class TileGrid {
 public:
  TileGrid(Index side, const Region& region)
      : side_(side),
        region_(region),
        rows_{floor_tile(region.rows.begin), floor_tile(region.rows.end - 1) + 1},
        cols_{floor_tile(region.cols.begin), floor_tile(region.cols.end - 1) + 1} {}

  struct Tile {
    Index image;
    Index row;  // of its first cell
    Index col;
  };

  [[nodiscard]] Index side() const { return side_; }
  [[nodiscard]] Index count() const { return region_.images.size() * rows_.size() * cols_.size(); }
  [[nodiscard]] Tile tile(Index number) const {
    const Index row = number / cols_.size();
    return {region_.images.begin + row / rows_.size(),
            (rows_.begin + row % rows_.size()) * side_,
            (cols_.begin + number % cols_.size()) * side_};
  }

 private:
  [[nodiscard]] Index floor_tile(Index cell) const {
    return cell >= 0 ? cell / side_ : -((side_ - 1 - cell) / side_);
  }

  Index side_;
  Region region_;
  Range rows_;  // in tiles
  Range cols_;
};

// The cells of a square of `side` at (row, col) that lie inside `region`.
TileCells cells_inside(const Region& region, Index row, Index col, Index side) {
  const auto clip = [side](Index cell) { return std::clamp<Index>(cell, 0, side); };
  return {clip(region.rows.begin - row),
          clip(region.rows.end - row),
          clip(region.cols.begin - col),
          clip(region.cols.end - col)};
}

// Whether a vector of channels from `first` on is a block of the view, of which `channels` are
// wanted and no others exist.
template <class T>
bool is_whole_block(const View<T>& view, Index first, const Range& channels) {
  return view.block == kLanes && (first - view.region.channels.begin) % kLanes == 0 &&
         (first + kLanes <= channels.end || channels.end == view.region.channels.end);
}

// Squares of cells of a view, kLanes channels deep, as transforms read them: where they lie if they
// lie so, else copied.
template <class T>
class Squares {
 public:
  Squares(View<const T> view, const Region& cells) : view_(view), cells_(cells) {}

  // The channels of cells_.channels from number `block` * kLanes on.
  TileTransform<T> at(Index block, Index image, Index row, Index col, Index side) {
    const Index first = cells_.channels.begin + block * kLanes;
    TileTransform<T> job;
    job.cells = cells_inside(cells_, row, col, side);
    if (is_whole_block(view_, first, cells_.channels)) {
      job.from = view_.cell(image, row, col) + view_.channel_offset(first);
      job.from_row = view_.row_stride();
      job.from_step = kLanes;
      return job;
    }
    copy_.fill(T{});
    const Index lanes = std::min(kLanes, cells_.channels.end - first);
    for (Index r = job.cells.row_begin; r < job.cells.row_end; ++r) {
      for (Index c = job.cells.col_begin; c < job.cells.col_end; ++c) {
        for (Index l = 0; l < lanes; ++l) {
          copy_[static_cast<std::size_t>((r * side + c) * kLanes + l)] =
              view_.at(image, first + l, row + r, col + c);
        }
      }
    }
    job.from = copy_.data();
    job.from_row = side * kLanes;
    job.from_step = kLanes;
    return job;
  }

 private:
  View<const T> view_;
  Region cells_;
  alignas(kAlignment)
      std::array<T, static_cast<std::size_t>(kLargestWindow* kLargestWindow* kLanes)> copy_{};
};

// Squares of a map, one for each tile of a grid.
template <class T>
struct TileSquares {
  typename LaneKernels<T>::Transform transform = nullptr;
  View<const T> view = {};
  Region cells = {};  // of the view; outside is 0
  Index offset = 0;   // from a tile's first cell to the square's
  Index side = 0;
};

// Transforms the squares of tiles [first, first + count). Called by all threads of a team.
template <class T>
void transform_squares(const TileSquares<T>& from,
                       const TileGrid& grid,
                       Index first,
                       Index count,
                       const Transformed<T>& to) {
  Squares<T> squares(from.view, from.cells);
#pragma omp for collapse(2) schedule(static)
  for (Index block = 0; block < to.blocks; ++block) {
    for (Index t = 0; t < count; ++t) {
      const TileGrid::Tile tile = grid.tile(first + t);
      TileTransform<T> job =
          squares.at(block, tile.image, tile.row + from.offset, tile.col + from.offset, from.side);
      job.to = to.at(0, block, t);
      job.to_step = to.position_stride();
      from.transform(job);
    }
  }
}

// A convolution of tiles: `in` at `offset` from a tile's first cell, with filters that are
// transformed already, to `out` on `region`.
template <class T>
struct TiledConvolution {
  Index side = 4;
  View<const T> in;
  Region in_cells;  // of `in`; outside is 0
  Index offset = 0;
  const T* weights = nullptr;  // (position, block of out, channel of in, kLanes)
  View<T> out;
  Region region;
  const T* bias = nullptr;
  bool add = false;
};

// Transforms the positions of a tile back to the channels of `out` from number `block` * kLanes on.
template <class T>
void store_tile(const TiledConvolution<T>& job,
                const TileGrid::Tile& tile,
                Index block,
                const T* positions,
                Index position_stride) {
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const auto transform = kernels.transform_sums[job.side / 2 - 1];
  const Index first = job.region.channels.begin + block * kLanes;
  const Index lanes = std::min(kLanes, job.region.channels.end - first);
  alignas(kAlignment) std::array<T, static_cast<std::size_t>(kLanes)> bias{};
  TileTransform<T> back;
  back.from = positions;
  back.from_step = position_stride;
  back.to_step = kLanes;
  back.cells = cells_inside(job.region, tile.row, tile.col, job.side);
  if (job.bias != nullptr) {
    std::copy_n(job.bias + block * kLanes, lanes, bias.begin());
    back.bias = bias.data();
  }
  if (is_whole_block(job.out, first, job.region.channels)) {
    back.to = job.out.cell(tile.image, tile.row, tile.col) + job.out.channel_offset(first);
    back.to_row = job.out.row_stride();
    back.add = job.add;
    transform(back);
    return;
  }
  alignas(kAlignment) std::array<T, static_cast<std::size_t>(kLargestSide * kLargestSide * kLanes)>
      cells{};
  back.to = cells.data();
  back.to_row = job.side * kLanes;
  transform(back);
  for (Index row = back.cells.row_begin; row < back.cells.row_end; ++row) {
    for (Index col = back.cells.col_begin; col < back.cells.col_end; ++col) {
      for (Index l = 0; l < lanes; ++l) {
        T& cell = job.out.at(tile.image, first + l, tile.row + row, tile.col + col);
        const T sum = cells[static_cast<std::size_t>((row * job.side + col) * kLanes + l)];
        cell = job.add ? cell + sum : sum;
      }
    }
  }
}

// sums = weights * tiles at every position, for `count` tiles. Called by all threads of a team.
template <class T>
void multiply(const T* weights,
              Index channels,
              Index positions,
              Index count,
              const Transformed<T>& tiles,
              const Transformed<T>& sums) {
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

template <class T>
void convolve(const TiledConvolution<T>& job, T* scratch) {
  const TileGrid grid(job.side, job.region);
  const Index channels = job.in_cells.channels.size();
  const Index filters = job.region.channels.size();
  const Index at_once = tiles_at_once(job.side, channels, filters);
  const Index positions = positions_of(job.side);
  const Transformed<T> tiles{scratch, blocks_of(channels), at_once};
  const Transformed<T> sums{
      scratch + positions * tiles.position_stride(), blocks_of(filters), at_once};
  const TileSquares<T> windows{lane_kernels<T>().transform_input[job.side / 2 - 1],
                               job.in,
                               job.in_cells,
                               job.offset,
                               job.side + 2};
#pragma omp parallel
  for (Index first = 0; first < grid.count(); first += at_once) {
    const Index count = std::min(at_once, grid.count() - first);
    transform_squares(windows, grid, first, count, tiles);
    multiply(job.weights, channels, positions, count, tiles, sums);
#pragma omp for collapse(2) schedule(static)
    for (Index block = 0; block < sums.blocks; ++block) {
      for (Index t = 0; t < count; ++t) {
        store_tile(job, grid.tile(first + t), block, sums.at(0, block, t), sums.position_stride());
      }
    }
  }
}

// Where the 3x3 weights from input channel `in` to output channel `out` lie, both counted from 0:
// at first + out * out_stride + in * in_stride, in order or, for the way back, turned by 180
// degrees.
template <class T>
struct FilterSource {
  const T* first = nullptr;
  Index out_stride = 0;
  Index in_stride = 0;
  bool turned = false;
};

template <class T>
void transform_filters(
    Index side, Index outs, Index ins, const FilterSource<T>& source, T* weights) {
  constexpr Index kTaps = kFilter * kFilter;
  const Index blocks = blocks_of(outs);
  const auto transform = lane_kernels<T>().transform_weights[side / 2 - 1];
#pragma omp parallel for collapse(2) schedule(static)
  for (Index block = 0; block < blocks; ++block) {
    for (Index in = 0; in < ins; ++in) {
      alignas(kAlignment) std::array<T, static_cast<std::size_t>(kTaps * kLanes)> filter{};
      const Index lanes = std::min(kLanes, outs - block * kLanes);
      const T* taps = source.first + block * kLanes * source.out_stride + in * source.in_stride;
      for (Index l = 0; l < lanes; ++l, taps += source.out_stride) {
        T* lane = filter.data() + l;
        for (Index i = 0; i < kTaps; ++i) {
          lane[i * kLanes] = taps[source.turned ? kTaps - 1 - i : i];
        }
      }
      TileTransform<T> job;
      job.from = filter.data();
      job.from_row = kFilter * kLanes;
      job.from_step = kLanes;
      job.cells = {0, kFilter, 0, kFilter};
      job.to = weights + (block * ins + in) * kLanes;
      job.to_step = blocks * ins * kLanes;
      transform(job);
    }
  }
}

Range grow(const Range& range, Index before, Index after) {
  return {range.begin - before, range.end + after};
}

// The input cells that a 3x3 convolution requires for `region`.
Region window_of(const ConvolutionShape& shape, const Region& region) {
  const Index after = kFilter - 1 - shape.padding;
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
  [[nodiscard]] T* at(Index position, Index block, Index channel) const {
    return data + (position * blocks + block) * block_stride() + channel * kLanes;
  }
};

// sums (+)= tiles * gradients at every position, over `count` tiles. Called by all threads of a
// team.
template <class T>
void add_products(const Transformed<T>& tiles,
                  const Transformed<T>& gradients,
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
void add_filters(typename LaneKernels<T>::Transform transform,
                 const FilterSums<T>& sums,
                 const ConvolutionShape& shape,
                 Index filters,
                 T* weight_gradient) {
#pragma omp for collapse(2) schedule(static)
  for (Index block = 0; block < sums.blocks; ++block) {
    for (Index c = 0; c < shape.channels; ++c) {
      alignas(kAlignment) std::array<T, static_cast<std::size_t>(9 * kLanes)> filter{};
      TileTransform<T> job;
      job.from = sums.at(0, block, c);
      job.from_step = sums.blocks * sums.block_stride();
      job.to = filter.data();
      job.to_step = kLanes;
      transform(job);
      for (Index l = 0; l < std::min(kLanes, filters - block * kLanes); ++l) {
        T* taps = weight_gradient + (block * kLanes + l) * shape.row() + c * shape.taps();
        for (Index i = 0; i < shape.taps(); ++i) {
          taps[i] += filter[static_cast<std::size_t>(i * kLanes + l)];
        }
      }
    }
  }
}

}  // namespace

ConvolutionWorkspaceSize winograd_workspace(const WinogradMethod& method,
                                            const Range& filters,
                                            bool training) {
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
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
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  if (region.empty()) {
    return;
  }
  T* weights = workspace.weights.data();
  transform_filters<T>(side,
                       region.channels.size(),
                       shape.channels,
                       {weight, shape.row(), shape.taps(), false},
                       weights);
  TiledConvolution<T> job;
  job.side = side;
  job.in = in;
  job.in_cells = window_of(shape, region);
  job.offset = -shape.padding;
  job.weights = weights;
  job.out = out;
  job.region = region;
  job.bias = bias;
  convolve(job, workspace.tiles.data());
}

template <class T>
void winograd_backward_data(const WinogradMethod& method,
                            View<const T> out_gradient,
                            const Filters<T>& filters,
                            const Region& region,
                            const Region& map,
                            View<T> in_gradient,
                            ConvolutionWorkspace<T>& workspace) {
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  if (region.empty()) {
    return;
  }
  T* weights = workspace.weights.data();
  const T* first = filters.weight + (region.channels.begin - filters.first) * shape.row();
  transform_filters<T>(side,
                       shape.channels,
                       region.channels.size(),
                       {first, shape.taps(), shape.row(), true},
                       weights);
  TiledConvolution<T> job;
  job.side = side;
  job.in = out_gradient;
  job.in_cells = region;
  job.offset = shape.padding - (kFilter - 1);
  job.weights = weights;
  job.out = in_gradient;
  job.region = intersect(map, window_of(shape, region));
  job.add = true;
  if (!job.region.empty()) {
    convolve(job, workspace.tiles.data());
  }
}

template <class T>
void winograd_backward_weights(const WinogradMethod& method,
                               View<const T> in,
                               View<const T> out_gradient,
                               const Region& region,
                               Index first_filter,
                               T* weight_gradient,
                               ConvolutionWorkspace<T>& workspace) {
  if (region.empty()) {
    return;
  }
  const ConvolutionShape& shape = method.shape;
  const Index side = method.side;
  const LaneKernels<T>& kernels = lane_kernels<T>();
  const auto number = static_cast<std::size_t>(side / 2 - 1);
  const TileGrid grid(side, region);
  const Index filters = region.channels.size();
  const Index positions = positions_of(side);
  const Index at_once = tiles_at_once(side, shape.channels, filters);
  const Transformed<T> tiles{workspace.tiles.data(), blocks_of(shape.channels), at_once};
  const Transformed<T> gradients{
      tiles.data + positions * tiles.position_stride(), blocks_of(filters), at_once};
  const TileSquares<T> windows{
      kernels.transform_input[number], in, window_of(shape, region), -shape.padding, side + 2};
  const TileSquares<T> outputs{kernels.transform_gradient[number], out_gradient, region, 0, side};
  const FilterSums<T> sums{workspace.weights.data(), gradients.blocks, tiles.blocks * kLanes};
#pragma omp parallel
  {
    for (Index first = 0; first < grid.count(); first += at_once) {
      const Index count = std::min(at_once, grid.count() - first);
      transform_squares(windows, grid, first, count, tiles);
      transform_squares(outputs, grid, first, count, gradients);
      add_products(tiles, gradients, positions, count, first == 0, sums);
    }
    T* first_gradient = weight_gradient + (region.channels.begin - first_filter) * shape.row();
    add_filters(kernels.transform_weight_gradient[number], sums, shape, filters, first_gradient);
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
