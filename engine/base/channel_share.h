// What one rank contributes to something that is summed over ranks channel by channel.

#pragma once

#include "partitioner/base/region.h"

namespace tessera::engine {

struct ChannelShare {
  Range channels;
  const double* values = nullptr;  // (channels, fields)
};

}  // namespace tessera::engine
