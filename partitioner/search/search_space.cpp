#include "partitioner/search/search_space.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "partitioner/base/layout.h"
#include "partitioner/cost/compute_model.h"
#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

constexpr std::size_t kFewDevices = 8;
constexpr double kUnequal = 1.02;  // devices whose speeds differ by less count as equal

std::vector<std::size_t> device_counts(std::size_t devices) {
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count <= devices; ++count) {
    const bool power_of_two = (count & (count - 1)) == 0;
    if (devices <= kFewDevices || power_of_two || count == devices) {
      counts.push_back(count);
    }
  }
  return counts;
}

// All that cut into `tiles` tiles, many rows first: of two that take equally long a search keeps
// the first, and rows keep lines long and halos together in memory. Channels go with images, rows
// or columns, not with two of them.
std::vector<Arrangement> shapes(Index tiles, Index batch, bool all) {
  std::vector<Arrangement> result;
  for (Index images = 1; images <= std::min(tiles, batch); ++images) {
    if (tiles % images != 0) {
      continue;
    }
    const Index tiles_per_image = tiles / images;
    for (Index channels = 1; channels <= tiles_per_image; ++channels) {
      if (tiles_per_image % channels != 0 || (!all && channels > 1 && channels < tiles_per_image)) {
        continue;
      }
      const Index cells = tiles_per_image / channels;
      for (Index rows = cells; rows >= 1; --rows) {
        const int cuts = (images > 1 ? 1 : 0) + (rows > 1 ? 1 : 0) + (rows < cells ? 1 : 0);
        if (cells % rows == 0 && (all || rows >= cells / rows) && (channels == 1 || cuts <= 1)) {
          result.push_back({images, channels, rows, cells / rows, {}, {}});
        }
      }
    }
  }
  return result;
}

// Two bands that together have as many parts of images as make `tiles` tiles. Where both have as
// many a grid does it.
std::vector<Arrangement> banded_shapes(Index tiles, Index batch, bool all) {
  std::vector<Arrangement> result;
  for (Index cols = 1; cols <= (all ? tiles : 1); ++cols) {
    for (Index second = 1; tiles % cols == 0 && 2 * second < tiles / cols; ++second) {
      const Index first = tiles / cols - second;
      if (first <= batch && batch % first == 0 && batch % second == 0) {
        result.push_back({1, 1, 2, cols, {}, {}, {first, second}});
      }
    }
  }
  return result;
}

std::vector<Arrangement> all_shapes(Index tiles, Index batch, bool all) {
  std::vector<Arrangement> result = shapes(tiles, batch, all);
  for (Arrangement& banded : banded_shapes(tiles, batch, all)) {
    result.push_back(std::move(banded));
  }
  return result;
}

// The sums of the tiles' weights along one dimension of `parts`, in which neighbours are `stride`
// tiles apart.
std::vector<double> part_weights(const std::vector<double>& weights, Index parts, Index stride) {
  std::vector<double> sums(static_cast<std::size_t>(parts));
  for (std::size_t tile = 0; tile < weights.size(); ++tile) {
    sums[static_cast<std::size_t>(static_cast<Index>(tile) / stride % parts)] += weights[tile];
  }
  return sums;
}

std::vector<double> tile_weights(const Arrangement& arrangement) {
  const std::vector<double> equal(arrangement.ranks.size(), 1.0);
  return arrangement.weights.empty() ? equal : arrangement.weights;
}

// The weights of the parts of the rows.
std::vector<double> row_weights(const Arrangement& arrangement) {
  const std::vector<double> weights = tile_weights(arrangement);
  if (arrangement.bands.empty()) {
    return part_weights(weights, arrangement.rows, arrangement.cols);
  }
  std::vector<double> sums;
  const double* tile = weights.data();
  for (const Index parts : arrangement.bands) {
    const double* const end = tile + parts * arrangement.cols;
    sums.push_back(std::accumulate(tile, end, 0.0));
    tile = end;
  }
  return sums;
}

// Boundaries in proportion to the weights, in multiples of `step` where there are enough of them;
// no part is empty.
Cut weighted_cut(const std::vector<double>& weights, Index extent, Index step) {
  const auto parts = static_cast<Index>(weights.size());
  const Index unit = extent >= parts * step ? step : 1;
  const Index units = extent / unit;
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  Cut cut{parts, {0}};
  double sum = 0;
  for (Index part = 1; part < parts; ++part) {
    sum += weights[static_cast<std::size_t>(part - 1)];
    const auto near = static_cast<Index>(std::lround(sum / whole * static_cast<double>(units)));
    const Index least = cut.boundaries.back() / unit + 1;
    cut.boundaries.push_back(std::clamp(near, least, units - (parts - part)) * unit);
  }
  cut.boundaries.push_back(extent);
  return cut;
}

// What tiles of `step` cells the busiest part has to compute, by its weight.
double busiest_part(const std::vector<Index>& boundaries,
                    const std::vector<double>& weights,
                    double step) {
  double most = 0;
  for (std::size_t part = 0; part < weights.size(); ++part) {
    const double tiles = std::ceil(static_cast<double>(boundaries[part + 1]) / step) -
                         std::floor(static_cast<double>(boundaries[part]) / step);
    most = std::max(most, tiles / weights[part]);
  }
  return most;
}

// Two parts with their boundary at the multiple of `step`, of those around the one in proportion,
// that leaves the busiest of them the least.
Cut fairest_halves(const std::vector<double>& weights, Index extent, Index step) {
  Cut fairest = weighted_cut(weights, extent, step);
  const auto busiest = [&](const Cut& cut) {
    return busiest_part(cut.boundaries, weights, static_cast<double>(step));
  };
  const Index first = fairest.boundaries[1] / step - 1;
  for (Index steps = std::max<Index>(first, 1); steps <= first + 3; ++steps) {
    const Cut cut{2, {0, steps * step, extent}};
    if (steps * step < extent && busiest(cut) < busiest(fairest)) {
      fairest = cut;
    }
  }
  return fairest;
}

// The last convolution at or before `last` by Winograd's tiles, in a group that begins at `first`:
// the side of its tiles, in cells of the output of `last`. Nothing where there is none.
std::optional<double> tile_step(const Network& network,
                                const std::vector<ConvolutionKernels>& kernels,
                                int first,
                                int last) {
  for (int layer = last; layer >= first; --layer) {
    const auto at = static_cast<std::size_t>(layer);
    const Index side = at < kernels.size() ? winograd_side(kernels[at].forward) : 0;
    if (side > 0) {
      return static_cast<double>(side) * static_cast<double>(network.shape(last).rows) /
             static_cast<double>(network.shape(layer).rows);
    }
  }
  return std::nullopt;
}

Cut cut_of(const std::vector<double>& weights, Index parts, Index stride, Index extent) {
  return weights.empty() || parts == 1
             ? Cut{parts, {}}
             : weighted_cut(part_weights(weights, parts, stride), extent, 1);
}

// The rows of a group in bands by the weights of each, its images by those of its tiles.
void cut_bands(const Arrangement& arrangement, Index batch, Index rows, Group& group) {
  group.rows = weighted_cut(row_weights(arrangement), rows, 1);
  const double* first = arrangement.weights.data();
  for (const Index parts : arrangement.bands) {
    const Index tiles = parts * arrangement.cols;
    std::vector<double> band_weights;
    if (!arrangement.weights.empty()) {
      band_weights.assign(first, first + tiles);
      first += tiles;
    }
    group.bands.push_back(cut_of(band_weights, parts, arrangement.cols, batch));
  }
}

// Whether a part of the layer's output channels requires no more than those channels of its input.
bool keeps_channels(const Network& network, int layer) {
  const Operation& operation = network.layer(layer).operation;
  if (const auto* convolution = std::get_if<Convolution>(&operation)) {
    return convolution->groups > 1 && convolution->groups == convolution->filters;
  }
  return layer_traits(operation).channel_slice == ChannelSlice::SameChannels;
}

bool can_cut_channels(const Network& network, int first, int last) {
  for (int layer = first + 1; layer <= last; ++layer) {
    if (!keeps_channels(network, layer)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int> by_speed(const std::vector<double>& speeds) {
  std::vector<int> order(speeds.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&speeds](int a, int b) {
    return speeds[static_cast<std::size_t>(a)] > speeds[static_cast<std::size_t>(b)];
  });
  return order;
}

std::vector<double> device_speeds(const Network& network,
                                  const std::vector<ConvolutionKernels>& kernels,
                                  const ClusterProfile& cluster) {
  std::vector<double> speeds;
  for (const DeviceProfile& device : cluster.devices) {
    double seconds = 0;
    for (int layer = 0; layer < network.size(); ++layer) {
      const Region whole = whole_map(network, layer, 1);
      const auto at = static_cast<std::size_t>(layer);
      const ConvolutionKernels layer_kernels =
          at < kernels.size() ? kernels[at] : ConvolutionKernels{};
      seconds += layer_seconds(network, layer, layer_kernels, device, whole, whole).total();
    }
    speeds.push_back(1 / seconds);
  }
  return speeds;
}

std::vector<Arrangement> arrangements(const std::vector<double>& speeds, Index batch) {
  const std::vector<int> order = by_speed(speeds);
  std::vector<Arrangement> result;
  for (const std::size_t count : device_counts(speeds.size())) {
    std::vector<int> ranks(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::sort(ranks.begin(), ranks.end());
    std::vector<double> weights;
    weights.reserve(count);
    for (const int rank : ranks) {
      weights.push_back(speeds[static_cast<std::size_t>(rank)]);
    }
    const auto [slowest, fastest] = std::minmax_element(weights.begin(), weights.end());
    const bool unequal = *fastest > *slowest * kUnequal;
    for (Arrangement& shape :
         all_shapes(static_cast<Index>(count), batch, speeds.size() <= kFewDevices)) {
      shape.ranks = ranks;
      result.push_back(shape);
      if (unequal) {
        shape.weights = weights;
        result.push_back(std::move(shape));
      }
    }
  }
  return result;
}

Arrangement arrangement_of(const Group& group) {
  Arrangement arrangement{group.images.parts,
                          group.channels.parts,
                          group.rows.parts,
                          group.cols.parts,
                          group.ranks,
                          {}};
  for (const Cut& band : group.bands) {
    arrangement.bands.push_back(band.parts);
  }
  return arrangement;
}

std::optional<Group> arranged_group(
    const Network& network, int first, int last, const Arrangement& arrangement, Index batch) {
  const MapShape& out = network.shape(last);
  const auto& [images, channels, rows, cols, ranks, weights, bands] = arrangement;
  if (images > batch || channels > out.channels || rows > out.rows || cols > out.cols ||
      (channels > 1 && !can_cut_channels(network, first, last))) {
    return std::nullopt;
  }
  Group group;
  group.first = first;
  group.last = last;
  group.ranks = ranks;
  group.cols = cut_of(weights, cols, 1, out.cols);
  group.rows = cut_of(weights, rows, cols, out.rows);
  group.images = cut_of(weights, images, channels * rows * cols, batch);
  if (channels > 1) {  // in whole blocks, so that all kernels compute as many as they keep
    group.channels = weighted_cut(part_weights(tile_weights(arrangement), channels, rows * cols),
                                  out.channels,
                                  channel_block(out.channels));
  }
  if (!bands.empty()) {
    cut_bands(arrangement, batch, out.rows, group);
  }
  return group;
}

std::optional<Group> cut_on_tiles(const Network& network,
                                  const std::vector<ConvolutionKernels>& kernels,
                                  const Arrangement& arrangement,
                                  const Group& group) {
  const std::optional<double> step = tile_step(network, kernels, group.first, group.last);
  if (!step || *step < 2) {
    return std::nullopt;
  }
  Group result = group;
  const auto move = [&](Cut& cut, const std::vector<double>& weights, Index extent) {
    if (cut.parts == 1) {
      return;
    }
    const auto whole_step = static_cast<Index>(*step);
    const Cut moved = cut.parts == 2 ? fairest_halves(weights, extent, whole_step)
                                     : weighted_cut(weights, extent, whole_step);
    if (busiest_part(moved.boundaries, weights, *step) <
        busiest_part(cut_boundaries(cut, extent), weights, *step)) {
      cut = moved;
    }
  };
  const MapShape& out = network.shape(group.last);
  move(result.cols, part_weights(tile_weights(arrangement), arrangement.cols, 1), out.cols);
  move(result.rows, row_weights(arrangement), out.rows);
  return result == group ? std::nullopt : std::optional(result);
}

}  // namespace tessera::partitioner
