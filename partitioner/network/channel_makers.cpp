#include "partitioner/network/channel_makers.h"

#include "partitioner/network/layer_traits.h"

namespace tessera::partitioner {

std::vector<ChannelMaker> channel_makers(const Network& network, int map, const Range& channels) {
  if (map == kImage || channels.empty()) {
    return {};
  }
  const LayerSpec& spec = network.layer(map);
  if (has_weights(spec.operation)) {
    return {{map, channels}};
  }
  const auto* route = std::get_if<Route>(&spec.operation);
  if (route == nullptr || route->groups > 1) {
    return {};
  }
  std::vector<ChannelMaker> makers;
  Index first = 0;
  for (const int input : spec.inputs) {
    const Index count = network.shape(input).channels;
    const Range part = intersect(channels, {first, first + count});
    if (!part.empty()) {
      const auto of_input = channel_makers(network, input, {part.begin - first, part.end - first});
      makers.insert(makers.end(), of_input.begin(), of_input.end());
    }
    first += count;
  }
  return makers;
}

}  // namespace tessera::partitioner
