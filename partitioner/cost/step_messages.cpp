#include "partitioner/cost/step_messages.h"

#include <algorithm>
#include <array>

#include "partitioner/network/layer_traits.h"
#include "partitioner/plan/transfers.h"

namespace tessera::partitioner {

void add_statistics(const std::vector<Tile>& tiles,
                    Region Tile::*contributes,
                    Index numbers,
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
  const auto bytes = [numbers](const Range& channels) {
    return statistics_bytes(numbers, channels.size());
  };
  if (alike) {
    load.add_all_to_all(ranks, bytes(all));
    return;
  }
  for_each_statistics_message(tiles, contributes, [&](int from, int to, const Range& channels) {
    load.add({from, to, bytes(channels)});
  });
}

std::vector<SharedParameter> shared_parameters(const Network& network,
                                               int layer,
                                               const std::vector<Tile>& tiles) {
  if (network.layer(layer).frozen) {
    return {};
  }
  const LayerParameters parameters = layer_parameters(network, layer);
  const bool normalized = normalizes(network.layer(layer).operation);
  const std::array shapes{std::pair(ParameterKind::Weight, parameters.weight),
                          std::pair(ParameterKind::Bias, parameters.bias),
                          std::pair(ParameterKind::Scale, parameters.scale)};
  std::vector<SharedParameter> result;
  for (const auto& [kind, shape] : shapes) {
    if (shape.channels > 0 && shape.row > 0) {
      const bool sent = kind == ParameterKind::Weight || !normalized;
      result.push_back({kind, shape.row, shared_runs(shape, tiles), sent});
    }
  }
  return result;
}

}  // namespace tessera::partitioner
