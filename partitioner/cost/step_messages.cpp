#include "partitioner/cost/step_messages.h"

#include <algorithm>
#include <array>

#include "partitioner/network/layer_memory.h"

namespace tessera::partitioner {

namespace {

Range channels_of(const Region& region) {
  return region.empty() ? Range{} : region.channels;
}

}  // namespace

void add_statistics(const std::vector<Tile>& tiles,
                    Region Tile::*contributes,
                    double numbers,
                    TransferLoad& load) {
  std::vector<int> ranks;
  Range all;
  bool alike = true;
  for (std::size_t rank = 0; rank < tiles.size(); ++rank) {
    const Range needs = channels_of(tiles[rank].computed);
    if (needs.empty()) {
      continue;
    }
    alike =
        alike && (ranks.empty() || needs == all) && channels_of(tiles[rank].*contributes) == needs;
    all = needs;
    ranks.push_back(static_cast<int>(rank));
  }
  if (alike) {
    constexpr double kNumberBytes = 8;
    load.add_all_to_all(ranks, numbers * kNumberBytes * static_cast<double>(all.size()));
    return;
  }
  for_each_statistics(
      tiles, contributes, numbers, [&load](const Parcel& parcel) { load.add(parcel); });
}

std::vector<SharedParameter> shared_parameters(const Network& network,
                                               int layer,
                                               const std::vector<Tile>& tiles) {
  const LayerParameters parameters = layer_parameters(network, layer);
  const bool normalized = normalizes(network.layer(layer).operation);
  const std::array shapes{std::pair(ParameterKind::Weight, parameters.weight),
                          std::pair(ParameterKind::Bias, parameters.bias),
                          std::pair(ParameterKind::Scale, parameters.scale)};
  std::vector<SharedParameter> result;
  for (const auto& [kind, shape] : shapes) {
    if (shape.channels > 0 && shape.row > 0) {
      const bool sent = kind == ParameterKind::Weight || !normalized;
      result.push_back({kind, shared_runs(shape, tiles), sent});
    }
  }
  return result;
}

}  // namespace tessera::partitioner
