#include "partitioner/interior.h"

#include <algorithm>

namespace partitioner {

namespace {

constexpr Index kGrid = 4;           // side of the largest Winograd tile
constexpr Index kRun = 28;           // cells that kernels compute side by side, a multiple of all
constexpr Index kFewestCells = 512;  // fewer would pay more for packing weights twice

// Winograd's kernels transform all filters again for each part of the border. On a Raspberry Pi 3
// that takes as long for a filter as 100 Mbit/s take to bring this many cells of a channel.
constexpr double kCellsPerFilter = 1.5;

// Cells of a channel of the map that the rank gets from others, for layers from this one on.
Index awaited_cells(const Network& network, const Plan& plan, int layer, int map, int rank) {
  const int group = plan.group(layer);
  for (int before = layer - 1; before >= 0 && plan.group(before) == group; --before) {
    const auto& inputs = network.layer(before).inputs;
    if (std::find(inputs.begin(), inputs.end(), map) != inputs.end()) {
      return 0;  // that one has waited already
    }
  }
  Index cells = 0;
  for (const Exchange& exchange : plan.exchanges) {
    if (exchange.map != map || exchange.group != group) {
      continue;
    }
    for (const Message& message : exchange.messages) {
      if (message.to == rank && message.from != rank) {
        cells += message.region.volume() / message.region.channels.size();
      }
    }
  }
  return cells;
}

Index up_to_multiple(Index value, Index of) {
  return (value + of - 1) / of * of;
}

// The outputs of `computed` whose windows lie in `ready` cells of `extent`, or beside these.
Range complete(const Convolution& shape, const Range& computed, const Range& ready, Index extent) {
  Range outputs = computed;
  if (ready.begin > 0) {
    outputs.begin = std::max(
        outputs.begin, up_to_multiple(ready.begin + shape.padding, shape.stride) / shape.stride);
  }
  if (ready.end < extent) {
    const Index last = ready.end + shape.padding - shape.size;  // where the last window begins
    outputs.end = last < 0 ? outputs.begin : std::min(outputs.end, last / shape.stride + 1);
  }
  return outputs;
}

// Moves the ends of `inner` that lie inside `all` further in: at least `step` from the end of
// `all`, on the grid.
Range aligned(const Range& inner, const Range& all, Index step) {
  Range result = inner;
  if (inner.begin > all.begin) {
    const Index begin = all.begin + up_to_multiple(inner.begin - all.begin, step);
    result.begin = up_to_multiple(begin, kGrid);
  }
  if (inner.end < all.end) {
    const Index end = all.end - up_to_multiple(all.end - inner.end, step);
    result.end = end / kGrid * kGrid;
  }
  return result;
}

}  // namespace

Region interior(const Network& network, const Plan& plan, int layer, int rank) {
  const auto* shape = std::get_if<Convolution>(&network.layer(layer).operation);
  if (shape == nullptr) {
    return {};
  }
  const int map = network.layer(layer).inputs[0];
  const int buffer =
      plan.read_from[static_cast<std::size_t>(rank)][static_cast<std::size_t>(layer)][0];
  const bool in_place = buffer != kNoBuffer && buffer == plan.producer(rank, map);
  const Index awaited = in_place ? awaited_cells(network, plan, layer, map, rank) : 0;
  if (awaited == 0) {
    return {};
  }
  const Region& computed = plan.tile(layer, rank).computed;
  const Region& ready = plan.tile(map, rank).owned;
  const MapShape& input = network.shape(map);
  if (!contains(ready.images, computed.images) ||
      !contains(ready.channels, Range{0, input.channels})) {
    return {};
  }
  Region result = computed;
  result.rows =
      aligned(complete(*shape, computed.rows, ready.rows, input.rows), computed.rows, kGrid);
  const bool by_tiles = winograd_side(plan.kernels_of(layer).forward) > 0;
  result.cols = aligned(complete(*shape, computed.cols, ready.cols, input.cols),
                        computed.cols,
                        by_tiles ? kGrid : kRun);
  const Index cells = computed.images.size() * computed.rows.size() * computed.cols.size();
  if (cells < kFewestCells || 3 * result.volume() < computed.volume()) {
    return {};
  }
  const auto filters = static_cast<double>(computed.channels.size()) *
                       static_cast<double>(border(computed, result).size());
  const bool hides_enough = static_cast<double>(awaited) >= kCellsPerFilter * filters;
  return !by_tiles || hides_enough ? result : Region{};
}

std::vector<TilePart> border(const Region& computed, const Region& interior) {
  std::vector<TilePart> parts;
  for (const Region& region : subtract(computed, interior)) {
    if (!parts.empty() && parts.back().region.rows == region.rows) {
      parts.back().ends_lines = false;  // the other side of the interior
    }
    parts.push_back({region, true});
  }
  return parts;
}

}  // namespace partitioner
