// Which layers with weights make some channels of a map, where nothing but routes lies between.

#pragma once

#include <vector>

#include "partitioner/network/network.h"

namespace tessera::partitioner {

struct ChannelMaker {
  int layer = 0;
  Range channels;  // of its own map
};

// In the order of channels; those that anything else makes are left out.
[[nodiscard]] std::vector<ChannelMaker> channel_makers(const Network& network,
                                                       int map,
                                                       const Range& channels);

}  // namespace tessera::partitioner
