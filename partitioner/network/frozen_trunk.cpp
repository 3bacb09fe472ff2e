#include "partitioner/network/frozen_trunk.h"

#include <set>
#include <variant>

#include "partitioner/network/losses.h"

namespace tessera::partitioner {

namespace {

// To the bit: how a library adds up products with a dense matrix depends on the number of images.
bool depends_on_image_alone(const Network& network, int layer) {
  const LayerSpec& spec = network.layer(layer);
  if (std::holds_alternative<Connected>(spec.operation)) {
    return false;
  }
  const bool drops_out = std::holds_alternative<Dropout>(spec.operation) && !spec.frozen;
  return !spec.has_backward && !drops_out && !loss_of(network, layer);
}

}  // namespace

FrozenTrunk frozen_trunk(const Network& network) {
  int end = 0;
  while (end < network.size() && depends_on_image_alone(network, end)) {
    ++end;
  }
  std::set<int> maps;
  for (int layer = end; layer < network.size(); ++layer) {
    for (const int map : network.layer(layer).inputs) {
      if (map < end) {
        maps.insert(map);
      }
    }
  }
  if (maps.empty() || maps.contains(kImage)) {
    return {};
  }
  return {end - 1, {maps.begin(), maps.end()}};
}

}  // namespace tessera::partitioner
