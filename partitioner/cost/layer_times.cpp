#include "partitioner/cost/layer_times.h"

#include <algorithm>

#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

namespace {

// Whether all layers take both as long.
bool compute_alike(DeviceProfile a, const DeviceProfile& b) {
  a.name = b.name;
  a.memory_bytes = b.memory_bytes;
  a.program_bytes = b.program_bytes;
  a.message_s = b.message_s;
  a.first_message_s = b.first_message_s;
  a.copied_bytes_per_s = b.copied_bytes_per_s;
  a.send_bytes_per_s = b.send_bytes_per_s;
  a.receive_bytes_per_s = b.receive_bytes_per_s;
  return a == b;
}

Range moved_to_start(const Range& range, Index step) {
  const Index begin = range.begin % step;
  return {begin, begin + range.size()};
}

// As far to the front as kernels compute as much.
Region moved_to_start(const Region& region) {
  if (region.empty()) {
    return {};
  }
  constexpr Index kBlocks = 48;  // a multiple of all blocks of channels
  constexpr Index kSides = 4;    // and of all Winograd tiles' sides
  return {{0, region.images.size()},
          moved_to_start(region.channels, kBlocks),
          moved_to_start(region.rows, kSides),
          moved_to_start(region.cols, kSides)};
}

}  // namespace

LayerTimes::LayerTimes(const Network& network,
                       const std::vector<ConvolutionKernels>& kernels,
                       const ClusterProfile& cluster)
    : network_(&network), kernels_(&kernels), cluster_(&cluster), known_(network.layers.size()) {
  for (int rank = 0; rank < cluster.size(); ++rank) {
    const auto alike = std::find_if(kinds_.begin(), kinds_.end(), [&](int other) {
      return compute_alike(cluster.device(other), cluster.device(rank));
    });
    kinds_.push_back(alike == kinds_.end() ? rank : *alike);
  }
}

const LayerSeconds& LayerTimes::seconds(int layer,
                                        int rank,
                                        const Region& computed,
                                        const Region& backward) {
  const auto at = static_cast<std::size_t>(layer);
  const int kind = kinds_[static_cast<std::size_t>(rank)];
  const Tile tile = standard(layer, {kind, computed, backward});
  Known& known = known_[at];
  if (known.last == nullptr || known.last->first != tile) {  // neighbours are often alike
    const auto [found, is_new] = known.tiles.try_emplace(tile);
    if (is_new) {
      found->second = layer_seconds(
          *network_, layer, (*kernels_)[at], cluster_->device(kind), computed, backward);
    }
    known.last = &*found;
  }
  return known.last->second;
}

// Where a convolution's tile lies does not matter, but for the grids that kernels compute on.
LayerTimes::Tile LayerTimes::standard(int layer, Tile tile) const {
  if (layer_traits(network_->layer(layer).operation).rated_as == RatedAs::Convolution) {
    const bool alike = tile.computed == tile.backward;
    tile.computed = moved_to_start(tile.computed);
    tile.backward = alike ? tile.computed : moved_to_start(tile.backward);
  }
  return tile;
}

std::size_t LayerTimes::Hash::operator()(const Tile& tile) const {
  auto hash = static_cast<std::uint64_t>(tile.kind);
  std::uint64_t factor = 1;
  for (const Region* region : {&tile.computed, &tile.backward}) {
    for (const Range& range : {region->images, region->channels, region->rows, region->cols}) {
      for (const Index number : {range.begin, range.end}) {
        factor *= 0x9e3779b97f4a7c15U;
        hash += static_cast<std::uint64_t>(number) * factor;
      }
    }
  }
  return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

}  // namespace tessera::partitioner
